#!/bin/sh
# Makes an access key for a CI job, uses it, and gives it back. API is the server's address, which ends with /kubernetes/management, and
# KEY is the access key to start from. If the certificate of the server is not publicly trusted, CURL_CA_BUNDLE names its authority.
set -eu
keys=$API/apis/management.platform.sh/v1/ownedaccesskeys

# The answer to this request alone has the text of the new key. curl reads the credential from its standard input: other users of the
# machine can read command lines.
created=$(printf 'header = "Authorization: Bearer %s"\n' "$KEY" |
  curl --config - --silent --show-error --fail-with-body --json '{
    "metadata": {"generateName": "ci-"},
    "spec": {"displayName": "Nightly builds", "ttl": 3600, "scope": {"roles": [{"role": "platformCLI"}]}}
  }' "$keys")
name=$(printf '%s' "$created" | sed -E 's/.*"name":"(ci-[a-z0-9]+)".*/\1/')
key=$(printf '%s' "$created" | sed -E 's/.*"key":"([^"]+)".*/\1/')

# Every key may read itself.
printf 'header = "Authorization: Bearer %s"\n' "$key" |
  curl --config - --silent --show-error --fail-with-body --output /dev/null --write-out "$name can read itself: %{http_code}\n" "$keys/$name"

# And every key may delete itself. It is refused from the next request on.
printf 'header = "Authorization: Bearer %s"\n' "$key" |
  curl --config - --silent --show-error --fail-with-body --output /dev/null --write-out "$name deletes itself: %{http_code}\n" --request DELETE "$keys/$name"
printf 'header = "Authorization: Bearer %s"\n' "$key" |
  curl --config - --silent --output /dev/null --write-out "$name afterwards: %{http_code}\n" "$keys/$name"
