// A SAML identity provider on a free port of the loopback. It takes the key and the certificate, and where it posts its answers. It asks who
// signs in, prints its address, and ends with its standard input.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import samlp from 'samlp';

const [key, certificate, callback] = process.argv.slice(2);
const people = { ana: { id: '1001', claims: { name: 'ana', mail: 'ana@example.com', groups: ['dev', 'ops'] } } };
const escape = (text) => String(text ?? '').replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

const answer = (issuer, sign) => samlp.auth({
  issuer, cert: readFileSync(certificate), key: readFileSync(key), destination: callback, recipient: callback, lifetimeInSeconds: 300, ...sign,
  getPostURL: (audience, request, req, done) => done(null, callback),
  profileMapper: (person) => ({
    getClaims: () => person.claims,
    getNameIdentifier: () => ({ nameIdentifier: person.id, nameIdentifierFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent' }),
  }),
});

const server = createServer((req, res) => {
  const at = new URL(req.url, 'http://127.0.0.1');
  let text = '';
  req.on('data', (part) => { text += part; });
  req.on('end', () => {
    req.query = Object.fromEntries(at.searchParams);
    req.body = Object.fromEntries(new URLSearchParams(text));
    res.set = (name, value) => res.setHeader(name, value);
    res.send = (page) => res.end(String(page));
    req.user = people[req.body.login];
    if (req.user) {
      const sign = { '/sso': {}, '/both': { signResponse: true }, '/response': { signResponse: true, signAssertion: false } }[at.pathname];
      answer(`http://127.0.0.1:${server.address().port}`, sign)(req, res, (failed) => { res.statusCode = 400; res.end(String(failed)); });
      return;
    }
    res.set('Content-Type', 'text/html');
    res.end(`<form method="post" action="${escape(at.pathname + at.search)}"><input name="login"></form>`);
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.on('end', () => process.exit(0)).resume();
