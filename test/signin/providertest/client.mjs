// A program that signs people in at the platform with the library openid-client, which knows the issuer and the client alone. It takes the
// issuer, the address at which the platform listens, and that of a browser: the browser answers /code with where it came back to, and /device when the
// code was allowed. The program prints what it got: from a code, as a device, and from a code whose refresh token it has revoked.
import * as client from 'openid-client';

const [issuer, platform, browser] = process.argv.slice(2);
const browse = async (path, parameters) => (await fetch(`${browser}${path}?${new URLSearchParams(parameters)}`)).text();
const config = await client.discovery(new URL(issuer), 'platform-cli', undefined, client.None(), {
  algorithm: 'oauth2', [client.customFetch]: (url, options) => fetch(String(url).replace(issuer, platform), options),
});
const verifier = client.randomPKCECodeVerifier();
const asked = {
  scope: 'openid profile offline_access', code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
};
const renewed = async (tokens) => {
  const next = await client.refreshTokenGrant(config, tokens.refresh_token);
  return { scopes: [tokens.scope, next.scope], keys: [tokens.access_token, next.access_token], refresh: next.refresh_token };
};
const withCode = async () => {
  const state = client.randomState();
  const address = client.buildAuthorizationUrl(config, { ...asked, state, redirect_uri: 'http://127.0.0.1:4711/' });
  const back = new URL(await browse('/code', { address }));
  return renewed(await client.authorizationCodeGrant(config, back, { pkceCodeVerifier: verifier, expectedState: state }));
};

const code = await withCode();
const waiting = await client.initiateDeviceAuthorization(config, asked);
await browse('/device', { code: waiting.user_code });
const device = await renewed(await client.pollDeviceAuthorizationGrant(config, { ...waiting, interval: 1 }, { code_verifier: verifier }));
const revoked = await withCode();
await client.tokenRevocation(config, revoked.refresh, { token_type_hint: 'refresh_token' });
revoked.after = await client.refreshTokenGrant(config, revoked.refresh).then(() => 'none', ({ error }) => error);
console.log(JSON.stringify({ code, device, revoked }));
