<?php
// The settings of SimpleSAMLphp for tests: a SAML identity provider on the loopback. FILES is a folder for what it writes, with its key and
// its certificate.
$config = [
    'baseurlpath' => 'http://' . $_SERVER['HTTP_HOST'] . '/',
    'certdir' => getenv('FILES') . '/',
    'datadir' => getenv('FILES') . '/',
    'loggingdir' => getenv('FILES') . '/',
    'tempdir' => getenv('FILES') . '/',
    'metadatadir' => __DIR__ . '/metadata/',
    'metadata.sources' => [['type' => 'flatfile']],
    'enable.saml20-idp' => true,
    'module.enable' => ['core' => true, 'exampleauth' => true, 'saml' => true],
    'secretsalt' => 'only for tests',
    'auth.adminpassword' => bin2hex(random_bytes(16)),
    'admin.checkforupdates' => false,
    'timezone' => 'UTC',
    'language.default' => 'en',
    'logging.handler' => 'file',
    'logging.level' => 4,
    'session.cookie.secure' => false,
    'session.cookie.samesite' => null,
    'store.type' => 'phpsession',
    'session.phpsession.savepath' => getenv('FILES'),
    'trusted.url.domains' => [],
];
