<?php
$metadata['https://idp.example/simplesamlphp'] = [
    'host' => '__DEFAULT__',
    'privatekey' => 'key.pem',
    'certificate' => 'crt.pem',
    'auth' => 'people',
    'authproc' => [
        10 => ['class' => 'saml:AttributeNameID', 'attribute' => 'id', 'Format' => 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent'],
    ],
];
