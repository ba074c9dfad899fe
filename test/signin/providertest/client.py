"""Signs people in at the platform with the library Authlib, which knows the issuer and the client alone.

It takes the issuer, the address at which the platform listens, and that of a browser: the browser answers /code with where it came back to, and
/device when the code was allowed. It prints what it got: from a code, as a device, and from a code whose refresh token it has revoked.
"""
import json
import sys

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url

ISSUER, PLATFORM, BROWSER = sys.argv[1:]
CLIENT = 'platform-cli'
SCOPE = 'openid profile offline_access'
DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'


class Elsewhere(requests.adapters.HTTPAdapter):
    """Sends what is for the issuer to the address at which the platform listens."""

    def send(self, request, **options):
        request.url = request.url.replace(ISSUER, PLATFORM, 1)
        return super().send(request, **options)


def session():
    made = OAuth2Session(
        CLIENT, scope=SCOPE, redirect_uri='http://127.0.0.1:4711/', code_challenge_method='S256', token_endpoint_auth_method='none')
    made.trust_env = False
    made.mount(ISSUER, Elsewhere())
    return made


def browse(path, **parameters):
    answer = requests.get(BROWSER + path, params=parameters, timeout=60)
    answer.raise_for_status()
    return answer.text


def error_of(call, *arguments, **parameters):
    try:
        call(*arguments, **parameters)
    except OAuthError as refused:
        return refused.error
    return 'none'


metadata = AuthorizationServerMetadata(session().get(get_well_known_url(ISSUER, external=True), withhold_token=True).json())
metadata.validate()
if metadata['issuer'] != ISSUER:
    sys.exit('the metadata are those of another issuer')
token_endpoint = metadata['token_endpoint']


def renewed(client, token):
    first = dict(token)
    following = client.refresh_token(token_endpoint, refresh_token=first['refresh_token'])
    return {
        'scopes': [first['scope'], following['scope']], 'keys': [first['access_token'], following['access_token']],
        'refresh': following['refresh_token'],
    }


def with_code(client):
    verifier = generate_token(48)
    address, state = client.create_authorization_url(metadata['authorization_endpoint'], code_verifier=verifier)
    back = browse('/code', address=address)
    return renewed(client, client.fetch_token(token_endpoint, authorization_response=back, state=state, code_verifier=verifier))


def as_device(client):
    verifier = generate_token(48)
    asked = client.post(metadata['device_authorization_endpoint'], withhold_token=True, data={
        'client_id': CLIENT, 'scope': SCOPE, 'code_challenge': create_s256_code_challenge(verifier), 'code_challenge_method': 'S256'})
    asked.raise_for_status()
    codes = asked.json()
    grant = {'grant_type': DEVICE_GRANT, 'device_code': codes['device_code'], 'code_verifier': verifier}
    before = error_of(client.fetch_token, token_endpoint, **grant)
    if before != 'authorization_pending':
        sys.exit('before somebody has allowed it, the device gets ' + before)
    browse('/device', code=codes['user_code'])
    return renewed(client, client.fetch_token(token_endpoint, **grant))


code, device = with_code(session()), as_device(session())
client = session()
revoked = with_code(client)
client.revoke_token(metadata['revocation_endpoint'], token=revoked['refresh'], token_type_hint='refresh_token').raise_for_status()
revoked['after'] = error_of(client.refresh_token, token_endpoint, refresh_token=revoked['refresh'])
print(json.dumps({'code': code, 'device': device, 'revoked': revoked}))
