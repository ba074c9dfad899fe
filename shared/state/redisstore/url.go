package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kind is the kind of server at an address.
type kind int

const (
	single kind = iota
	cluster
	sentinel
)

// scheme has the properties that the scheme of a URL stands for.
type scheme struct {
	kind   kind
	secure bool
	socket bool
	port   string
}

var schemes = map[string]scheme{
	"redis":           {kind: single, port: "6379"},
	"rediss":          {kind: single, port: "6379", secure: true},
	"unix":            {kind: single, socket: true},
	"redis-cluster":   {kind: cluster, port: "6379"},
	"rediss-cluster":  {kind: cluster, port: "6379", secure: true},
	"redis-sentinel":  {kind: sentinel, port: "26379"},
	"rediss-sentinel": {kind: sentinel, port: "26379", secure: true},
}

type address struct {
	scheme
	// hosts are host:port, or the one path of a socket.
	hosts              []string
	username, password string
	database           int
	tls                *tls.Config
	// master is the name under which sentinels know the primary.
	master                             string
	sentinelUsername, sentinelPassword string
}

// parameters are the known parameters of a URL. The value reports whether a scheme has the parameter.
var parameters = map[string]func(scheme) bool{
	"db":                func(s scheme) bool { return s.kind != cluster },
	"ca_file":           isSecure,
	"cert_file":         isSecure,
	"key_file":          isSecure,
	"server_name":       isSecure,
	"skip_verify":       isSecure,
	"sentinel_username": func(s scheme) bool { return s.kind == sentinel },
	"sentinel_password": func(s scheme) bool { return s.kind == sentinel },
}

func isSecure(s scheme) bool { return s.secure }

// parse reads a URL, or several URLs of single servers separated by commas, which are the seeds of a cluster. Errors
// quote no part of a URL, because what looks like a scheme, a port or a parameter may be part of a password.
func parse(raw string, base *tls.Config) (address, error) {
	raw = strings.TrimSpace(raw)
	name, _, _ := strings.Cut(raw, "://")
	if schemes[name].kind != single || !strings.Contains(raw, ",") {
		return parseOne(raw, base)
	}
	var clusterAddress address
	seeds := strings.Split(raw, ",")
	for i, seed := range seeds {
		parsed, err := parseOne(strings.TrimSpace(seed), base)
		if err != nil {
			return address{}, fmt.Errorf("URL %d of %d: %w", i+1, len(seeds), err)
		}
		if i == 0 {
			clusterAddress = parsed
		} else {
			clusterAddress.hosts = append(clusterAddress.hosts, parsed.hosts...)
		}
		switch {
		case parsed.kind != single || parsed.socket:
			return address{}, errors.New("several URLs are the nodes of a cluster: all must be redis:// or rediss:// URLs")
		case parsed.database != 0:
			return address{}, errors.New("a cluster has no database number")
		case parsed.secure != clusterAddress.secure:
			return address{}, errors.New("use either redis:// or rediss:// for all nodes of a cluster")
		}
	}
	clusterAddress.kind = cluster
	return clusterAddress, nil
}

func parseOne(raw string, base *tls.Config) (address, error) {
	name, rest, ok := strings.Cut(raw, "://")
	properties, known := schemes[name]
	switch {
	case !ok:
		return address{}, errors.New("it has no scheme; write redis://[user:password@]host[:port][/database]")
	case !known:
		return address{}, errors.New("the scheme must be redis, rediss, unix, redis-cluster, rediss-cluster, redis-sentinel or rediss-sentinel")
	case strings.Contains(rest, "#"):
		return address{}, errors.New("it has a number sign: write %23 for a number sign in a password")
	case strings.ContainsFunc(rest, unicode.IsControl):
		return address{}, errors.New("it has a control character")
	}
	a := address{scheme: properties}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		if err := a.credentials(authority[:i]); err != nil {
			return address{}, err
		}
		authority = authority[i+1:]
	}
	if err := a.parsePlace(authority, path); err != nil {
		return address{}, err
	}
	values, err := a.settings(query)
	if err != nil {
		return address{}, err
	}
	if a.secure {
		if a.tls, err = tlsConfig(base, values); err != nil {
			return address{}, err
		}
	} else if base != nil {
		return address{}, errors.New("TLS is configured, but the scheme has no TLS")
	}
	return a, nil
}

func (a *address) credentials(text string) error {
	user, password, _ := strings.Cut(text, ":")
	var errUser, errPassword error
	a.username, errUser = url.PathUnescape(user)
	a.password, errPassword = url.PathUnescape(password)
	if errUser != nil || errPassword != nil {
		return errors.New("a percent sign in the user or password is not followed by two hexadecimal digits: write %25 for a percent sign")
	}
	return nil
}

// parsePlace reads the part between credentials and parameters.
func (a *address) parsePlace(authority, path string) error {
	if a.socket {
		socket, err := url.PathUnescape(path)
		switch {
		case authority != "":
			return errors.New("unix:// must be followed by an absolute path")
		case path == "" || path == "/":
			return errors.New("it has no socket path")
		case err != nil:
			return errors.New("a percent sign in the path is not followed by two hexadecimal digits")
		}
		a.hosts = []string{socket}
		return nil
	}
	if strings.Contains(path, "@") {
		return errors.New("there is a slash before the @: write %2F for a slash in a password")
	}
	for host := range strings.SplitSeq(authority, ",") {
		full, err := hostPort(strings.TrimSpace(host), a.port)
		if err != nil {
			return err
		}
		a.hosts = append(a.hosts, full)
	}
	steps := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	switch {
	case a.kind == cluster && len(steps) > 0:
		return errors.New("a cluster has no database number: only parameters can follow the hosts")
	case a.kind == cluster:
		return nil
	case a.kind == sentinel && len(steps) == 0:
		return errors.New("it does not name the primary: write redis-sentinel://host1,host2/name")
	case a.kind == sentinel:
		name, err := url.PathUnescape(steps[0])
		if err != nil {
			return errors.New("a percent sign in the primary's name is not followed by two hexadecimal digits")
		}
		a.master, steps = name, steps[1:]
	}
	switch {
	case len(steps) > 1:
		return errors.New("its path has too many segments")
	case len(steps) == 1:
		return a.choose(steps[0])
	default:
		return nil
	}
}

func (a *address) choose(database string) error {
	number, err := strconv.Atoi(database)
	if err != nil || number < 0 {
		return errors.New("the database must be a number, 0 or greater")
	}
	a.database = number
	return nil
}

func (a *address) settings(query string) (url.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("a parameter is not correctly percent-encoded")
	}
	for name, texts := range values {
		fits, known := parameters[name]
		switch {
		case !known:
			return nil, fmt.Errorf("it has an unknown parameter: use %s", strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
		case !fits(a.scheme):
			return nil, fmt.Errorf("parameter %s cannot be used with this scheme", name)
		case len(texts) > 1:
			return nil, fmt.Errorf("parameter %s is given twice", name)
		case texts[0] == "":
			return nil, fmt.Errorf("parameter %s is empty", name)
		}
	}
	a.sentinelUsername, a.sentinelPassword = values.Get("sentinel_username"), values.Get("sentinel_password")
	if database := values.Get("db"); database != "" {
		return values, a.choose(database)
	}
	return values, nil
}

// hostPort checks a host and returns it with its port, or with the given default port if it has none.
func hostPort(text, port string) (string, error) {
	if text == "" {
		return "", errors.New("it has no host")
	}
	u := url.URL{Host: text}
	host := u.Hostname()
	if given := u.Port(); given != "" {
		port = given
	}
	switch {
	case strings.HasPrefix(text, "["):
		if _, err := netip.ParseAddr(host); err != nil {
			return "", errors.New("the text in brackets is not an IPv6 address")
		}
	case host == "":
		return "", errors.New("it has no host")
	case strings.Contains(host, ":"):
		return "", errors.New("the port is not a number; write an IPv6 address in brackets, and a password before an @")
	case strings.ContainsFunc(host, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-._", c)
	}):
		return "", errors.New("the host has an invalid character: use letters, digits, dash, underscore and dot")
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", errors.New("the port must be a number from 1 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}

// tlsConfig returns base with the settings of the parameters.
func tlsConfig(base *tls.Config, values url.Values) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if base != nil {
		config = base.Clone()
	}
	if name := values.Get("server_name"); name != "" {
		config.ServerName = name
	}
	switch values.Get("skip_verify") {
	case "true", "1":
		config.InsecureSkipVerify = true
	case "", "false", "0":
	default:
		return nil, errors.New("parameter skip_verify must be true or false")
	}
	if file := values.Get("ca_file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the file of parameter ca_file: %w", withoutPath(err))
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("the file of parameter ca_file has no certificate in PEM")
		}
	}
	certificate, key := values.Get("cert_file"), values.Get("key_file")
	if (certificate == "") != (key == "") {
		return nil, errors.New("parameters cert_file and key_file must be given together")
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("reading the files of parameters cert_file and key_file: %w", withoutPath(err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// withoutPath returns an error without the path that it quotes.
func withoutPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
