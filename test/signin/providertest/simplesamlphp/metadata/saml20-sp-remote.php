<?php
$metadata['platform'] = ['AssertionConsumerService' => getenv('CALLBACK'), 'attributes.NameFormat' => 'urn:oasis:names:tc:SAML:2.0:attrname-format:basic'];
