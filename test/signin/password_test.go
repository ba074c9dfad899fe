package signin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/checkpassword"
	"management.platform.sh/functions/confirmlogin"
	"management.platform.sh/functions/describelogin"
	"management.platform.sh/functions/exchangetoken"
	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/functions/startlogin"
	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/password"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/oauth"
)

// right is the password of ana.
const right = "gravel-otter-7-lampshade"

// local is a platform whose people have passwords: ana, ben without one, and carl, who is disabled.
func local(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.config.Auth.OIDC, w.config.PlatformHost = nil, strings.TrimPrefix(base, "https://")
	w.handler = w.server.Mount(describelogin.Function, startlogin.Function, finishlogin.Function, checkpassword.Function, confirmlogin.Function, exchangetoken.Function)
	users := kinds.Users(w.env)
	for _, name := range []string{"ana", "ben", "carl"} {
		if _, err := resource.Create(t.Context(), users, resource.CreateInput[*model.User]{
			Caller: root, Object: &model.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.UserSpec{Disabled: name == "carl"}},
		}); err != nil {
			t.Fatal(err)
		}
		if name != "ben" {
			w.setPassword(name, right)
		}
	}
	return w
}

func (w *world) setPassword(name, text string) {
	w.t.Helper()
	if _, err := password.Open(w.env, kinds.Users(w.env)).Set(w.t.Context(), resource.SubresourceInput[*model.UserPassword]{
		Caller: root, Name: name, Object: &model.UserPassword{Spec: model.UserPasswordSpec{Password: secret.String(text)}},
	}); err != nil {
		w.t.Fatal(err)
	}
}

// post sends a name and a password as a program does, from an address.
func (w *world) post(name, text, address string) (int, string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]string{
		"client_id": oauth.ClientID, "code_challenge": oauth.S256(verifier), "code_challenge_method": "S256", "username": name, "password": text,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, base+"/auth/password/login", strings.NewReader(string(body)))
	request.Header.Set("Content-Type", "application/json")
	request.RemoteAddr = address + ":1234"
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

// outOfBand changes a request for a key to that of a program that has sent the password itself.
func outOfBand(form url.Values) { form.Set("redirect_uri", oauth.OutOfBand) }

func (w *world) caller(answer map[string]any) identity.Caller {
	w.t.Helper()
	key, _ := answer["access_token"].(string)
	caller, err := accesskey.OpenAuthenticator(w.env).Bearer(w.t.Context(), secret.String(key))
	if err != nil {
		w.t.Fatal(err)
	}
	return caller
}

// A program that has the password gets a code, and for that a key, once. Source: ADR-0032.
func TestPasswordOfAProgram(t *testing.T) {
	t.Parallel()
	w := local(t)
	status, body := w.post("ana", right, "192.0.2.1")
	var granted struct{ Code string }
	if err := json.Unmarshal([]byte(body), &granted); err != nil || status != http.StatusOK || granted.Code == "" {
		t.Fatalf("%d %s", status, body)
	}
	if keys := w.stored("ownedaccesskeys"); len(keys) > 0 {
		t.Error("there is a key before the program fetches it")
	}
	status, answer := w.fetch(granted.Code, outOfBand)
	if status != http.StatusOK || answer["user"] != "ana" || answer["expires_in"] != 3600.0 {
		t.Fatalf("%d %v", status, answer)
	}
	caller := w.caller(answer)
	if caller.Owner != (identity.Owner{Kind: identity.User, Name: "ana"}) || caller.KeyType != model.AccessKeyTypeLogin || caller.Admin() {
		t.Errorf("%+v", caller)
	}
	if status, answer := w.fetch(granted.Code, outOfBand); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("the code twice: %d %v", status, answer)
	}
	// A code for a browser's program is not one for this, and the verifier counts.
	_, body = w.post("ana", right, "192.0.2.1")
	if err := json.Unmarshal([]byte(body), &granted); err != nil {
		t.Fatal(err)
	}
	if status, answer := w.fetch(granted.Code, nil); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("another redirect_uri: %d %v", status, answer)
	}
	_, body = w.post("ana", right, "192.0.2.1")
	if err := json.Unmarshal([]byte(body), &granted); err != nil {
		t.Fatal(err)
	}
	// The password is another one before the key is made.
	w.setPassword("ana", "violet-Anchor-93-tundra")
	if status, answer := w.fetch(granted.Code, outOfBand); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("after a new password: %d %v", status, answer)
	}
	for about, change := range map[string]string{
		"no challenge": `{"client_id":"platform-cli","username":"ana","password":"x"}`,
		"plain":        `{"client_id":"platform-cli","code_challenge":"` + strings.Repeat("a", 43) + `","code_challenge_method":"plain","username":"ana","password":"x"}`,
		"no password":  `{"client_id":"platform-cli","code_challenge":"` + strings.Repeat("a", 43) + `","code_challenge_method":"S256","username":"ana"}`,
		"a number":     `{"username":1}`,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, base+"/auth/password/login", strings.NewReader(change))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, request)
		if recorder.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", about, recorder.Code, recorder.Body)
		}
	}
	if text := w.log.String(); strings.Contains(text, right) || strings.Contains(text, granted.Code) {
		t.Error("the log has a password or a code")
	}
}

// A browser gets a page for the password, and goes on as after any sign-in. Source: ADR-0032.
func TestPasswordOfABrowser(t *testing.T) {
	t.Parallel()
	w := local(t)
	b := w.browser()
	page := b.send(base+"/auth/password/login?"+asked().Encode(), nil)
	body := text(t, page)
	_, rest, found := strings.Cut(body, `name="id" value="`)
	id, _, _ := strings.Cut(rest, `"`)
	if page.StatusCode != http.StatusOK || !found || !strings.Contains(body, `type="password"`) || len(b.cookies) != 1 {
		t.Fatalf("%d %s", page.StatusCode, body)
	}
	send := func(b *browser, password string, header ...string) *http.Response {
		return b.send(base+"/auth/password/login", url.Values{"id": {id}, "username": {"ana"}, "password": {password}}, header...)
	}
	if other := send(w.browser(), right); other.StatusCode != http.StatusBadRequest {
		t.Errorf("another browser: %d", other.StatusCode)
	}
	if foreign := send(b, right, "Sec-Fetch-Site", "cross-site"); foreign.StatusCode != http.StatusForbidden {
		t.Errorf("the form of another site: %d", foreign.StatusCode)
	}
	wrong := send(b, "violet-Anchor-93-tundra")
	if body := text(t, wrong); wrong.StatusCode != http.StatusUnauthorized || !strings.Contains(body, `type="password"`) || !strings.Contains(body, id) {
		t.Errorf("a wrong password: %d %s", wrong.StatusCode, body)
	}
	if left := w.stored(logins.Resource); len(left) > 0 {
		t.Errorf("%d records before anybody is known", len(left))
	}
	callback := send(b, right)
	back := b.confirm(callback, "allow")
	if back.Get("state") != known || back.Get("iss") != base || len(b.cookies) > 0 {
		t.Errorf("the program gets %v, and the browser keeps %v", back, b.cookies)
	}
	status, answer := w.fetch(back.Get("code"), nil)
	if status != http.StatusOK || w.caller(answer).Owner.Name != "ana" {
		t.Fatalf("%d %v", status, answer)
	}
	if again := send(b, right); again.StatusCode != http.StatusBadRequest {
		t.Errorf("the attempt twice: %d", again.StatusCode)
	}
	for name, value := range map[string]string{"redirect_uri": "https://evil.example/", "code_challenge_method": "plain", "state": ""} {
		query := asked()
		query.Set(name, value)
		if got := w.browser().send(base+"/auth/password/login?"+query.Encode(), nil); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s=%s: %d", name, value, got.StatusCode)
		}
	}
}

// Whoever guesses learns nothing of a user: the answers are the same, and so is the work, which is counted and not timed.
// Source: ADR-0032.
func TestNobodyLearnsWhoIsThere(t *testing.T) {
	t.Parallel()
	w := local(t)
	hasher := password.OpenHasher(w.env)
	var first string
	for i, try := range []struct{ name, text string }{
		{"ana", "wrong"}, {"ana", ""}, {"ana", strings.Repeat("x", 1025)}, {"ben", right}, {"carl", right}, {"carl", "wrong"}, {"nobody", right}, {"Not A Name", right},
		{strings.Repeat("x", 300), right}, {"../ana", right},
	} {
		before := hasher.Runs()
		status, body := w.post(try.name, try.text, "192.0.2.7")
		runs := hasher.Runs() - before
		if try.text == "" {
			if status != http.StatusBadRequest || runs != 0 {
				t.Errorf("%q without a password: %d", try.name, status)
			}
			continue
		}
		if i == 0 {
			first = body
		}
		if status != http.StatusUnauthorized || runs != 1 || body != first {
			t.Errorf("%q: %d after %d hashes: %s", try.name, status, runs, body)
		}
	}
	// The counts are the same as well: for a user that exists, one that does not, and for the right password after that.
	answers := map[string]bool{}
	for _, name := range []string{"ana", "nobody-else"} {
		for i := range limits.PasswordFailures {
			_, _ = w.post(name, "wrong", "198.51.100."+string(rune('1'+i%3)))
		}
		before := hasher.Runs()
		status, body := w.post(name, right, "203.0.113.9")
		if status != http.StatusTooManyRequests || hasher.Runs() != before {
			t.Errorf("%s after %d wrong passwords: %d %s", name, limits.PasswordFailures, status, body)
		}
		answers[body] = true
	}
	if len(answers) != 1 {
		t.Errorf("the refusals differ: %v", answers)
	}
	w.clock.forward(limits.PasswordFailuresWindow)
	if status, body := w.post("ana", right, "203.0.113.9"); status != http.StatusOK {
		t.Errorf("after a quarter of an hour: %d %s", status, body)
	}
}

// BenchmarkWhoIsThere measures whether the time of an answer tells who is a user: wrong passwords for a user and for nobody, in turn, and
// the difference of the medians. Run it with -benchtime 2000x on a machine that does nothing else. Source: ADR-0032.
func BenchmarkWhoIsThere(b *testing.B) {
	w := local(b)
	names := [2]string{"ana", "nobody"}
	var took [2][]time.Duration
	for i := 0; b.Loop(); i++ {
		for j := range names {
			at := (i + j) % 2
			begin := time.Now()
			status, body := w.post(names[at], "violet-Anchor-93-tundra", "192.0.2.1")
			took[at] = append(took[at], time.Since(begin))
			if status != http.StatusUnauthorized {
				b.Fatalf("%s: %d %s", names[at], status, body)
			}
		}
		// The counts of wrong passwords begin again.
		w.clock.forward(limits.PasswordFailuresWindow)
	}
	var medians [2]float64
	for at := range took {
		slices.Sort(took[at])
		medians[at] = took[at][len(took[at])/2].Seconds() * 1000
		b.ReportMetric(medians[at], "ms/"+names[at])
	}
	b.ReportMetric(100*math.Abs(medians[0]-medians[1])/medians[0], "%difference")
}

// A browser that is throttled gets a page that says when to come back: after too many wrong passwords, and above the rate of its
// address. Source: ADR-0020, ADR-0032.
func TestThrottledPages(t *testing.T) {
	t.Parallel()
	w := local(t)
	wantPage := func(about string, answer *http.Response, words string) {
		t.Helper()
		body := text(t, answer)
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") ||
			!strings.Contains(body, "<dt>Request</dt>") || !strings.Contains(body, words) || strings.Contains(body, right) {
			t.Errorf("%s: %d %v %s", about, answer.StatusCode, answer.Header, body)
		}
	}
	b := w.browser()
	_, rest, _ := strings.Cut(text(t, b.send(base+"/auth/password/login?"+asked().Encode(), nil)), `name="id" value="`)
	id, _, _ := strings.Cut(rest, `"`)
	send := func(password string) *http.Response {
		return b.send(base+"/auth/password/login", url.Values{"id": {id}, "username": {"ana"}, "password": {password}})
	}
	for range limits.PasswordFailures {
		if answer := send("violet-Anchor-93-tundra"); answer.StatusCode != http.StatusUnauthorized {
			t.Fatalf("a wrong password: %d", answer.StatusCode)
		}
	}
	wantPage("the right password after too many wrong ones", send(right), "too many wrong passwords")
	if left := w.stored(logins.Resource); len(left) > 0 {
		t.Errorf("%d records of a sign-in that was refused", len(left))
	}
	w.clock.forward(limits.PasswordFailuresWindow)
	w.server.Rates.Anonymous = fairness.NewRate("anonymous requests", 1, nil)
	for _, page := range []string{"/auth/password/login?" + asked().Encode(), "/auth/oidc/login?" + asked().Encode(), "/auth/confirm?id=x"} {
		var last *http.Response
		for range limits.RateBurst + 1 {
			last = w.browser().send(base+page, nil)
		}
		wantPage(page, last, "the limit is 1 a second")
	}
}

// auth.password.disabled takes the sign-in away, and /auth/info says what there is. Source: Spec 2.7, 5.4.
func TestPasswordDisabled(t *testing.T) {
	t.Parallel()
	w := local(t)
	info := func() string { return text(t, w.browser().send(base+"/auth/info", nil)) }
	if got := info(); !strings.Contains(got, `"password":{"enabled":true,"issuer":"`+base+`","loginEndpoint":"`+base+`/auth/password/login"`) {
		t.Errorf("%s", got)
	}
	w.config.PlatformHost = ""
	if got := info(); !strings.Contains(got, `"password":{"enabled":true}`) {
		t.Errorf("%s", got)
	}
	if got := w.browser().send(base+"/auth/password/login?"+asked().Encode(), nil); got.StatusCode != http.StatusBadRequest {
		t.Errorf("the page without an address: %d", got.StatusCode)
	}
	if status, body := w.post("ana", right, "192.0.2.1"); status != http.StatusOK {
		t.Errorf("a program needs no address: %d %s", status, body)
	}
	w.config.Auth.Password = &model.PasswordAuth{Disabled: true}
	if got := info(); !strings.Contains(got, `"password":{"enabled":false}`) {
		t.Errorf("%s", got)
	}
	hasher := password.OpenHasher(w.env)
	before := hasher.Runs()
	if status, body := w.post("ana", right, "192.0.2.1"); status != http.StatusNotFound || hasher.Runs() != before {
		t.Errorf("disabled: %d %s", status, body)
	}
	if got := w.browser().send(base+"/auth/password/login?"+asked().Encode(), nil); got.StatusCode != http.StatusNotFound {
		t.Errorf("disabled, the page: %d", got.StatusCode)
	}
	if got := w.browser().send(base+"/auth/password/callback?state=x&code=y", nil); got.StatusCode != http.StatusBadRequest {
		t.Errorf("the callback of a connector: %d", got.StatusCode)
	}
}

// The program signs in with a password, and needs no browser. A wrong one leaves no file. Source: ADR-0032.
func TestLoginCommandWithPassword(t *testing.T) {
	s := serve(t)
	if _, err := resource.Create(t.Context(), kinds.Users(s.env), resource.CreateInput[*model.User]{
		Caller: root, Object: &model.User{ObjectMeta: metav1.ObjectMeta{Name: "ana"}},
	}); err != nil {
		t.Fatal(err)
	}
	s.setPassword("ana", right)
	login := func(text string) error {
		command := s.login(func(string) error {
			t.Error("a browser was opened")
			return nil
		})
		command.Username, command.Password, command.Input = "ana", true, strings.NewReader(text)
		return command.Run(t.Context())
	}
	for _, wrong := range []string{"", "\n", "violet-Anchor-93-tundra\n"} {
		if err := login(wrong); err == nil || strings.Contains(err.Error(), "violet") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if files := s.keyFiles(); len(files) > 0 {
		t.Errorf("there is %v", files)
	}
	if err := login(right + "\r\n"); err != nil {
		t.Fatal(err)
	}
	if status, body := s.whoAmI(); status != http.StatusCreated || !strings.Contains(body, `"ana"`) {
		t.Errorf("%d %s", status, body)
	}
	// On a terminal the person is asked.
	typed := func(text string, err error) error {
		command := s.login(nil)
		command.Username, command.Terminal = "ana", func(_ context.Context, prompt string) (string, error) {
			if prompt != "Password of ana at "+strings.TrimPrefix(s.server.URL, "https://")+": " {
				t.Errorf("it asks %q", prompt)
			}
			return text, err
		}
		return command.Run(t.Context())
	}
	if err := typed("", nil); err == nil || !strings.Contains(err.Error(), "no password was typed") {
		t.Errorf("nothing is typed: %v", err)
	}
	if err := typed("", io.ErrClosedPipe); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the terminal is gone: %v", err)
	}
	if err := typed(right, nil); err != nil {
		t.Error(err)
	}
	s.config.Auth.Password = &model.PasswordAuth{Disabled: true}
	if err := login(right); err == nil || !strings.Contains(err.Error(), "browser") {
		t.Errorf("disabled: %v", err)
	}
}
