<?php
$config = [
    'people' => [
        'exampleauth:UserPass',
        'ana:only for tests' => ['id' => ['1001'], 'name' => ['ana'], 'mail' => ['ana@example.com'], 'groups' => ['dev', 'ops']],
    ],
];
