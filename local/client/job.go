package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
)

// The names of RFC 8693.
const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	jwtType       = "urn:ietf:params:oauth:token-type:jwt"
)

// The places where jobs find their tokens.
const (
	jobTokenVariable = settings.IDToken
	jobTokenFile     = settings.IDTokenFile
	githubURL        = "ACTIONS_ID_TOKEN_REQUEST_URL"
	githubBearer     = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
	// projectedToken is the path at which the documentation mounts the token of a Kubernetes service account.
	projectedToken = "/var/run/secrets/management.platform.sh/token" //nolint:gosec // a path, not a token
)

// job is a job that exchanges its own token for an access key. Source: ADR-0036.
type job struct {
	// server is the base address of the API. audience is the audience of the job's token; empty: the host of the server.
	server, audience string
	// rule is the name of the trust rule; empty: the only rule that matches.
	rule string
	// file has the token; empty: the variables of the CI system name its place.
	file string
	// projected is the path of a Kubernetes token, if there is one. Empty: projectedToken.
	projected string
	client    *http.Client
	now       func() time.Time
}

// needsCI refuses flags about the tokens of jobs without --ci, which would have no effect.
func needsCI(ci bool, flags ...string) error {
	if !ci && strings.Join(flags, "") != "" {
		return errors.New("--rule, --token-file and --audience are for the tokens of jobs: use them with --ci")
	}
	return nil
}

// key exchanges the token of the job. A refusedError is final.
func (j *job) key(ctx context.Context) (cachedToken, error) {
	token, asksGitHub, err := j.proof()
	if err == nil && asksGitHub {
		token, err = j.githubToken(ctx, token)
	}
	if err != nil {
		return cachedToken{}, err
	}
	form := url.Values{"grant_type": {exchangeGrant}, "client_id": {loginClient}, "subject_token": {token.Reveal()}, "subject_token_type": {jwtType}}
	if j.rule != "" {
		form.Set("rule", j.rule)
	}
	request, err := http.NewRequestWithContext(mayRepeat(ctx), http.MethodPost, strings.TrimSuffix(j.server, "/")+"/auth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return cachedToken{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	// A token may work once. The idempotency key lets the platform recognize a repetition after a lost response.
	request.Header.Set("Idempotency-Key", rand.Text())
	start := j.now()
	response, err := j.client.Do(request)
	if err != nil {
		return cachedToken{}, fmt.Errorf("exchanging the token of the job: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return cachedToken{}, fmt.Errorf("exchanging the token of the job: %w", err)
	}
	var answer struct {
		Key     string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
		Error   string `json:"error"`
		Why     string `json:"error_description"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(text, &answer)
	switch {
	case response.StatusCode == http.StatusOK && answer.Key != "" && answer.Seconds > 0:
		return cachedToken{Token: answer.Key, Issued: start, Expires: start.Add(time.Duration(answer.Seconds) * time.Second)}, nil
	case answer.Error != "" && response.StatusCode < http.StatusTooManyRequests:
		return cachedToken{}, &refusedError{fmt.Sprintf("the platform made no access key for the job (%s): %s", answer.Error, answer.Why)}
	default:
		return cachedToken{}, fmt.Errorf("exchanging the token of the job: %s", cmp.Or(answer.Why, answer.Message, response.Status))
	}
}

// proof returns a secret of this job alone: its token, from the file, from a variable or from a volume of Kubernetes;
// or the credential for requesting a token from GitHub Actions.
func (j *job) proof() (text secret.String, asksGitHub bool, err error) {
	file := cmp.Or(j.file, os.Getenv(jobTokenFile))
	switch {
	case file != "":
		text, err = readJobToken(file)
		return text, false, err
	case os.Getenv(jobTokenVariable) != "":
		return secret.String(strings.TrimSpace(os.Getenv(jobTokenVariable))), false, nil
	case os.Getenv(githubURL) != "" && os.Getenv(githubBearer) != "":
		return secret.String(os.Getenv(githubBearer)), true, nil
	case os.Getenv("GITHUB_ACTIONS") == "true":
		return "", false, errors.New("the job may not ask for an ID token: give it `permissions: {id-token: write}`")
	case os.Getenv("GITLAB_CI") == "true":
		return "", false, fmt.Errorf("the job has no ID token: give it `id_tokens: {%s: {aud: %s}}`", jobTokenVariable, j.tokenAudience())
	}
	projected := cmp.Or(j.projected, projectedToken)
	if _, err := os.Stat(projected); err == nil {
		text, err = readJobToken(projected)
		return text, false, err
	}
	return "", false, fmt.Errorf("no token of a job is here: GitHub Actions gives one to jobs with `id-token: write`; elsewhere set %s, or %s, or mount one at %s",
		jobTokenVariable, jobTokenFile, projected)
}

func readJobToken(file string) (secret.String, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the author of the job names the file and reads it with the rights of the job
	if err != nil {
		return "", fmt.Errorf("reading the token of the job: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("reading the token of the job: %s is empty", file)
	}
	return secret.String(token), nil
}

// tokenAudience returns the audience of the token: the platform.
func (j *job) tokenAudience() string {
	if j.audience != "" {
		return j.audience
	}
	at, err := url.Parse(j.server)
	if err != nil {
		return j.server
	}
	return at.Scheme + "://" + at.Host
}

// githubToken requests the token of the job from GitHub Actions.
func (j *job) githubToken(ctx context.Context, bearer secret.String) (secret.String, error) {
	address, err := url.Parse(os.Getenv(githubURL))
	if err != nil || address.Host == "" || address.Scheme != "https" && (address.Scheme != "http" || !onThisMachine(address.Hostname())) {
		return "", fmt.Errorf("%s is not an https URL", githubURL)
	}
	query := address.Query()
	query.Set("audience", j.tokenAudience())
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil) //nolint:gosec // the CI system names its own address
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+bearer.Reveal())
	request.Header.Set("Accept", "application/json")
	// A repetition changes nothing. The service fails at times, also with 403 while the job begins.
	client := newRepeatingClient(&http.Client{
		Timeout:       tokenTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, func(answer *http.Response, err error) bool {
		return err != nil || answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusForbidden
	})
	response, err := client.Do(request) //nolint:gosec // see above
	if err != nil {
		// The error of the client quotes the address, which must not be logged.
		return "", fmt.Errorf("asking GitHub Actions for the token of the job: %w", errors.Unwrap(err))
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Value string `json:"value"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil || response.StatusCode != http.StatusOK || answer.Value == "" {
		return "", fmt.Errorf("asking GitHub Actions for the token of the job: the answer is %s", response.Status)
	}
	return secret.String(answer.Value), nil
}

const (
	// jobPrefix is the prefix of the names of files with access keys of jobs.
	jobPrefix = "job-"
	// jobLock is the name of the file that a program locks while it exchanges a token.
	jobLock = "job.lock"
)

// forgetJobs removes the access keys of jobs from a folder.
func forgetJobs(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, jobPrefix+"*"))
	for _, file := range files {
		err = errors.Join(err, remove(file))
	}
	return err
}

// cachedKey returns the access key of the job: the stored key, or a new one if less than a fifth of its lifetime is left.
// Several plugins that run at the same time exchange one token once.
func (j *job) cachedKey(ctx context.Context, folder string) (secret.String, error) {
	// Another job on this computer has another key.
	proof, _, err := j.proof()
	if err != nil {
		return "", err
	}
	question, err := json.Marshal([]string{j.server, j.tokenAudience(), j.rule, proof.Reveal()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(question)
	file := filepath.Join(folder, jobPrefix+hex.EncodeToString(sum[:])+".json")
	cached := readKept(file)
	if cached.isFresh(j.now()) {
		return secret.String(cached.Token), nil
	}
	unlock, err := lockExclusively(ctx, filepath.Join(folder, jobLock))
	if err != nil {
		return "", fmt.Errorf("--cache: %w", err)
	}
	defer unlock()
	if cached = readKept(file); cached.isFresh(j.now()) {
		return secret.String(cached.Token), nil
	}
	fresh, err := j.key(ctx)
	if err != nil {
		if cached.isValid(j.now()) {
			// The token of the job works once. The key that was exchanged for it still works.
			return secret.String(cached.Token), nil
		}
		return "", err
	}
	return secret.String(fresh.Token), writeKept(file, fresh)
}
