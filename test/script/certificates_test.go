//go:build unix

package script_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

// authority makes a certificate authority: NAME.crt and NAME.key in PEM, and NAME.crt64 and NAME.key64 in base64 on one line. NAME.key.secret
// and NAME.key.line are parts of the key that occur in no other key.
func authority(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	name := singleArgument(ts, args)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(2 * 365 * 24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	for suffix, block := range map[string]*pem.Block{
		"crt": {Type: "CERTIFICATE", Bytes: certificate}, "key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		text := pem.EncodeToMemory(block)
		file := ts.MkAbs(name + "." + suffix)
		ts.Check(os.WriteFile(file, text, 0o600))
		encoded := base64.StdEncoding.EncodeToString(text)
		ts.Check(os.WriteFile(file+"64", []byte(encoded+"\n"), 0o600))
		// The first and the last line are the same in every PEM.
		ts.Check(os.WriteFile(file+".secret", []byte(encoded[64:len(encoded)-64]+"\n"), 0o600))
		ts.Check(os.WriteFile(file+".line", []byte(strings.Split(string(text), "\n")[2]+"\n"), 0o600))
	}
}

// fill writes a file in which names in braces are replaced with variables and lines of other files.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) < 3 {
		ts.Fatalf("usage: fill TEMPLATE FILE NAME...")
	}
	text := ts.ReadFile(args[0])
	for _, name := range args[2:] {
		with := ts.Getenv(name)
		if with == "" {
			with = strings.TrimSpace(ts.ReadFile(name))
		}
		text = strings.ReplaceAll(text, "{"+name+"}", with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// clusterServer is an API server that only answers with its version. It requires client certificates of an authority, and its answer names the
// user of the certificate. Its address is in CLUSTER, and its own authority in cluster.crt64.
func clusterServer(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(ts.ReadFile(singleArgument(ts, args)))) {
		ts.Fatalf("%s is no certificate", args[0])
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12,
	})
	ts.Check(err)
	server := &http.Server{ReadHeaderTimeout: patience, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.TLS.PeerCertificates[0].Subject
		groups := slices.Sorted(slices.Values(who.Organization))
		_ = json.NewEncoder(w).Encode(map[string]any{"path": r.URL.Path, "user": who.CommonName, "groups": groups})
	})}
	go func() { _ = server.Serve(listener) }()
	ts.Defer(func() { _ = server.Close() })
	ts.Setenv("CLUSTER", listener.Addr().String())
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	ts.Check(os.WriteFile(ts.MkAbs("cluster.crt64"), []byte(base64.StdEncoding.EncodeToString(text)), 0o600))
}

// checkCertificate verifies the client certificate of a kubeconfig: the authority, the user, the usage for client authentication,
// the start five minutes before its creation, and the lifetime in seconds from its creation.
func checkCertificate(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) != 4 {
		ts.Fatalf("usage: certified KUBECONFIG AUTHORITY USER SECONDS")
	}
	var config struct {
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[0])), &config))
	if len(config.Users) != 1 {
		ts.Fatalf("%d users", len(config.Users))
	}
	pair, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	ts.Check(err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ts.ReadFile(args[1]))) {
		ts.Fatalf("%s is no certificate", args[1])
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	ts.Check(err)
	if pair.Leaf.Subject.CommonName != args[2] {
		ts.Fatalf("it is %s's", pair.Leaf.Subject)
	}
	lives := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore) - 5*time.Minute
	if got := fmt.Sprint(int64(lives / time.Second)); got != args[3] {
		ts.Fatalf("it lives %s seconds, not %s", got, args[3])
	}
}

// field writes one field of a YAML or JSON file to another file. The path consists of names and indexes, separated by dots.
func field(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) != 3 {
		ts.Fatalf("usage: field FILE PATH OUTPUT")
	}
	text := ts.ReadFile(args[0])
	if args[0] != "stdout" {
		// The output of http begins with the head of the answer.
		if _, body, found := strings.Cut(text, "\n\n"); found && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "apiVersion") {
			text = body
		}
	}
	var value any
	ts.Check(yaml.Unmarshal([]byte(text), &value))
	for step := range strings.SplitSeq(args[1], ".") {
		switch at := value.(type) {
		case map[string]any:
			value = at[step]
		case []any:
			var i int
			_, err := fmt.Sscan(step, &i)
			ts.Check(err)
			if i >= len(at) {
				ts.Fatalf("%s: there are %d", args[1], len(at))
			}
			value = at[i]
		default:
			ts.Fatalf("%s: nothing at %s", args[1], step)
		}
	}
	content, ok := value.(string)
	if !ok || content == "" {
		ts.Fatalf("%s is no text", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(content), 0o600))
}
