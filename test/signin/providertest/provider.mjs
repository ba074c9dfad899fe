// An OpenID Connect provider over TLS on a free port of the loopback. It takes the key and the certificate, the callback of its only
// client and the page after a sign-out as arguments, and the secret of the client from the environment. It prints its address, and ends
// with its standard input. With LOGOUT_URI in the environment, it tells the client there that a session has ended.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { Provider } from 'oidc-provider';

const [key, certificate, callback, after] = process.argv.slice(2);
const people = {
  1001: { preferred_username: 'ana', name: 'Ana', email: 'ana@example.com', email_verified: true, groups: ['dev', 'ops'] },
};

const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) });
server.listen(0, '127.0.0.1', () => {
  const issuer = `https://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'platform', client_secret: process.env.CLIENT_SECRET, redirect_uris: [callback], response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'], post_logout_redirect_uris: after ? [after] : [],
      ...(process.env.LOGOUT_URI && { backchannel_logout_uri: process.env.LOGOUT_URI, backchannel_logout_session_required: true }),
    }],
    features: { revocation: { enabled: true }, backchannelLogout: { enabled: true } },
    // The client is on the loopback, where the provider would not ask otherwise.
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
    pkce: { required: () => true },
    claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'profile', 'email', 'groups', 'offline_access'],
    cookies: { keys: ['only for tests'] },
    // The claims are in the ID token, as most providers do it. The test about getUserInfo takes them from there as well.
    conformIdTokenClaims: false,
    findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
  });
  provider.on('backchannel.error', (_, failed) => console.error(String(failed), failed.cause));
  server.on('request', provider.callback());
  console.log(issuer);
});
process.stdin.on('end', () => process.exit(0)).resume();
