package signin_test

import (
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/functions/approvedevice"
	"management.platform.sh/functions/checkpassword"
	"management.platform.sh/functions/confirmlogin"
	"management.platform.sh/functions/describelogin"
	"management.platform.sh/functions/exchangetoken"
	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/functions/requestdevice"
	"management.platform.sh/functions/revokecredentials"
	"management.platform.sh/functions/startlogin"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
)

// deviceWorld is a platform at which devices sign in.
func deviceWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.handler = w.server.Mount(describelogin.Function, startlogin.Function, finishlogin.Function, checkpassword.Function, confirmlogin.Function,
		exchangetoken.Function, requestdevice.Function, approvedevice.Function, revokecredentials.Function)
	return w
}

// post sends a form of a program from an address.
func (w *world) postForm(path, address string, form url.Values) (int, map[string]any) {
	w.t.Helper()
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, base+path, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.RemoteAddr = address + ":1234"
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	answer := map[string]any{}
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		w.t.Fatalf("%s: %d %s: %v", path, recorder.Code, recorder.Body, err)
	}
	return recorder.Code, answer
}

func askedByDevice() url.Values {
	return url.Values{
		"client_id": {oauth.ClientID}, "code_challenge": {oauth.S256(verifier)}, "code_challenge_method": {"S256"}, "hostname": {"build-7"},
	}
}

// ask asks for codes as a device does.
func (w *world) ask() (device, code string) {
	w.t.Helper()
	status, answer := w.postForm("/auth/device/code", "203.0.113.9", askedByDevice())
	if status != http.StatusOK || answer["expires_in"] != 600.0 || answer["interval"] != 5.0 || answer["verification_uri"] != base+"/auth/device" {
		w.t.Fatalf("%d %v", status, answer)
	}
	device, _ = answer["device_code"].(string)
	code, _ = answer["user_code"].(string)
	if !regexp.MustCompile(`^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$`).MatchString(code) || len(device) < 43 ||
		answer["verification_uri_complete"] != base+"/auth/device?user_code="+code {
		w.t.Fatalf("%v", answer)
	}
	return device, code
}

// poll asks for the key of a device.
func (w *world) poll(device string, change func(url.Values)) (int, map[string]any) {
	w.t.Helper()
	form := url.Values{"grant_type": {oauth.DeviceGrant}, "client_id": {oauth.ClientID}, "device_code": {device}, "code_verifier": {verifier}}
	if change != nil {
		change(form)
	}
	return w.postForm("/auth/token", "203.0.113.9", form)
}

// wantPoll fails the test unless a device is refused with an error.
func (w *world) wantPoll(about, device, want string) {
	w.t.Helper()
	if status, answer := w.poll(device, nil); status != http.StatusBadRequest || answer["error"] != want {
		w.t.Errorf("%s: %d %v, want %s", about, status, answer, want)
	}
}

// enter types a code and returns the page with the ways to sign in.
func (b *browser) enter(code string) (int, string) {
	b.w.t.Helper()
	answer := b.send(base+"/auth/device", url.Values{"user_code": {code}}, "Sec-Fetch-Site", "same-origin")
	return answer.StatusCode, text(b.w.t, answer)
}

var links = regexp.MustCompile(`<a href="([^"]+)"`)

// way returns the address at which a sign-in begins, from the page that offers it.
func way(t testing.TB, page, id string) string {
	t.Helper()
	for _, found := range links.FindAllStringSubmatch(page, -1) {
		if address := html.UnescapeString(found[1]); strings.HasPrefix(address, "/auth/"+id+"/login?device=") {
			return base + address
		}
	}
	t.Fatalf("no way %s in %s", id, page)
	return ""
}

// toConfirm enters a code, signs in at the provider, and returns the ID of the sign-in and the page with the question.
func (b *browser) toConfirm(code string) (id, page string) {
	b.w.t.Helper()
	status, choice := b.enter(code)
	if status != http.StatusOK {
		b.w.t.Fatalf("%d %s", status, choice)
	}
	begun := b.send(way(b.w.t, choice, "oidc"), nil)
	if begun.StatusCode != http.StatusSeeOther {
		b.w.t.Fatalf("%d %s", begun.StatusCode, text(b.w.t, begun))
	}
	callback := b.send(base+"/auth/oidc/callback?"+b.w.provider.login(begun.Header.Get("Location")).Encode(), nil)
	at, err := url.Parse(callback.Header.Get("Location"))
	if err != nil || callback.StatusCode != http.StatusSeeOther {
		b.w.t.Fatalf("%d %s %v", callback.StatusCode, text(b.w.t, callback), err)
	}
	asked := b.send(at.String(), nil)
	if asked.StatusCode != http.StatusOK {
		b.w.t.Fatalf("%d %s", asked.StatusCode, text(b.w.t, asked))
	}
	return at.Query().Get("id"), text(b.w.t, asked)
}

// decide answers the question.
func (b *browser) decide(id, decision string) *http.Response {
	b.w.t.Helper()
	return b.send(base+"/auth/confirm", url.Values{"id": {id}, "decision": {decision}}, "Sec-Fetch-Site", "same-origin")
}

// A device without a browser signs in: somebody enters its code, signs in, sees who asks and from where, and allows it. The key is made
// when the device asks for it, once. Source: RFC 8628; ADR-0031.
func TestDevice(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	device, code := w.ask()
	w.wantPoll("before the code is entered", device, "authorization_pending")
	b := w.browser()
	prefilled := text(t, b.send(base+"/auth/device?user_code="+code, nil))
	if !strings.Contains(prefilled, `value="`+code+`"`) || !strings.Contains(prefilled, "only if") {
		t.Errorf("%s", prefilled)
	}
	id, page := b.toConfirm(strings.ToLower(strings.ReplaceAll(code, "-", " ")))
	for _, want := range []string{code, "build-7", "203.0.113.9, which is not yours", "<dd>0 seconds ago</dd>", "<dd>ana</dd>"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	if users := w.stored("users"); len(users) != 1 {
		t.Errorf("%d users", len(users))
	}
	w.clock.forward(5 * time.Second)
	w.wantPoll("before the decision", device, "authorization_pending")
	decided := b.decide(id, "allow")
	if body := text(t, decided); decided.StatusCode != http.StatusOK || !strings.Contains(body, "You are signed in") || len(b.cookies) > 0 {
		t.Errorf("%d %s %v", decided.StatusCode, body, b.cookies)
	}
	if keys := w.stored("ownedaccesskeys"); len(keys) > 0 {
		t.Error("there is a key before the device asks for it")
	}
	// The verifier of another program does not fetch the key, and does not use the code up.
	if status, answer := w.poll(device, func(form url.Values) { form.Set("code_verifier", strings.Repeat("x", 43)) }); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("another verifier: %d %v", status, answer)
	}
	w.clock.forward(5 * time.Second)
	status, answer := w.poll(device, nil)
	if status != http.StatusOK || answer["user"] != "ana" || answer["expires_in"] != 3600.0 {
		t.Fatalf("%d %v", status, answer)
	}
	caller := w.caller(answer)
	if caller.Owner != (identity.Owner{Kind: identity.User, Name: "ana"}) || caller.KeyType != model.AccessKeyTypeLogin {
		t.Errorf("%+v", caller)
	}
	made, err := resource.Get(t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: caller.Key})
	if err != nil || made.Spec.Description != "Sign-in of a program on build-7, 203.0.113.9" || made.Spec.Identity.UserID != "1001" {
		t.Errorf("%+v, %v", made, err)
	}
	// What the key makes ends with it: the person may have been talked into allowing the device.
	bearer, _ := answer["access_token"].(string)
	child := kept{w, secret.String(bearer), caller.Key}.child()
	if shown, err := resource.Get(t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: child.name}); err != nil ||
		len(accesskey.Bounding(shown.Status.Lineage)) != 1 {
		t.Errorf("a key of a device made %+v, %v", shown.Status, err)
	}
	w.wantPoll("the code twice", device, "invalid_grant")
	if status, _ := b.enter(code); status != http.StatusBadRequest {
		t.Errorf("the code is entered again: %d", status)
	}
	if answer := b.decide(id, "allow"); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the decision again: %d", answer.StatusCode)
	}
}

// A refusal and the end of the time are final, and the answers are those of RFC 8628, 3.5. Nobody gets a key.
func TestDeviceEnds(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	device, code := w.ask()
	b := w.browser()
	id, _ := b.toConfirm(code)
	if body := text(t, b.decide(id, "deny")); !strings.Contains(body, "You have refused") {
		t.Errorf("%s", body)
	}
	for range 2 {
		w.wantPoll("refused", device, "access_denied")
	}
	if answer := b.decide(id, "allow"); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("allowed after it was refused: %d", answer.StatusCode)
	}
	device, code = w.ask()
	late := w.browser()
	id, _ = late.toConfirm(code)
	w.clock.forward(10*time.Minute - time.Second)
	w.wantPoll("before the end", device, "authorization_pending")
	w.clock.forward(time.Second)
	w.wantPoll("at the end", device, "expired_token")
	if answer := late.decide(id, "allow"); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("allowed after the end: %d", answer.StatusCode)
	}
	if status, _ := w.browser().enter(code); status != http.StatusBadRequest {
		t.Errorf("entered after the end: %d", status)
	}
	w.wantPoll("unknown", "unknown", "invalid_grant")
	if keys := w.stored("ownedaccesskeys"); len(keys) > 0 {
		t.Errorf("%d keys", len(keys))
	}
}

// A device that asks too early gets slow_down, and must wait five seconds more for good. Source: RFC 8628, 3.5.
func TestDevicePolls(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	device, _ := w.ask()
	for _, row := range []struct {
		after time.Duration
		want  string
	}{
		{0, "authorization_pending"},
		{5 * time.Second, "authorization_pending"},
		{5*time.Second - time.Millisecond, "slow_down"},
		{10*time.Second - time.Millisecond, "slow_down"},
		{15 * time.Second, "authorization_pending"},
		{14 * time.Second, "slow_down"},
		{20 * time.Second, "authorization_pending"},
	} {
		w.clock.forward(row.after)
		w.wantPoll(row.after.String(), device, row.want)
	}
}

// Two programs that ask at the same time get one key. Source: ADR-0031.
func TestDeviceAtOnce(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	device, code := w.ask()
	b := w.browser()
	id, _ := b.toConfirm(code)
	if answer := b.decide(id, "allow"); answer.StatusCode != http.StatusOK {
		t.Fatalf("%d", answer.StatusCode)
	}
	var all sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		all.Go(func() { statuses[i], _ = w.poll(device, nil) })
	}
	all.Wait()
	got := map[int]int{}
	for _, status := range statuses {
		got[status]++
	}
	if got[http.StatusOK] != 1 || got[http.StatusBadRequest] != 7 || len(w.stored("ownedaccesskeys")) != 1 {
		t.Errorf("%v, %d keys", got, len(w.stored("ownedaccesskeys")))
	}
}

// A link that somebody sends leads to the page where the code is entered, never past it: the browser must have entered the code of this
// device. A form of another site enters and decides nothing. Source: RFC 8628, 5.4; ADR-0031.
func TestDevicePhishing(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	_, code := w.ask()
	_, another := w.ask()
	attacker := w.browser()
	_, choice := attacker.enter(code)
	link := way(t, choice, "oidc")
	w.wantRefusedDevice("the link in another browser", w.browser().send(link, nil))
	victim := w.browser()
	if status, _ := victim.enter(another); status != http.StatusOK {
		t.Fatalf("%d", status)
	}
	w.wantRefusedDevice("the link of one device after the code of another", victim.send(link, nil))
	w.clock.forward(9 * time.Minute)
	w.clock.forward(time.Minute)
	w.wantRefusedDevice("the link after ten minutes", attacker.send(link, nil))
	for about, site := range map[string]string{"another site": "cross-site", "another origin of the site": "same-site"} {
		w.wantRefusedDevice(about, w.browser().send(base+"/auth/device", url.Values{"user_code": {code}}, "Sec-Fetch-Site", site))
	}
	// A sign-in that was begun for a program on this computer decides nothing about a device.
	b := w.browser()
	if _, err := url.Parse(b.prove().Header.Get("Location")); err != nil {
		t.Error(err)
	}
	page := text(t, w.browser().send(base+"/auth/device", nil))
	if !strings.Contains(page, "close this page") {
		t.Errorf("the page warns nobody: %s", page)
	}
}

// wantRefusedDevice fails the test unless an answer is a refusal that leads nowhere.
func (w *world) wantRefusedDevice(about string, answer *http.Response) {
	w.t.Helper()
	if answer.StatusCode/100 != 4 || answer.Header.Get("Location") != "" {
		w.t.Errorf("%s: %d %s", about, answer.StatusCode, answer.Header.Get("Location"))
	}
}

// Requests and codes are bounded for each address, and a right code does not count. Source: ADR-0031.
func TestDeviceLimits(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	var code string
	for range limits.DeviceRequestsOfAddress {
		_, code = w.ask()
	}
	if status, _ := w.postForm("/auth/device/code", "203.0.113.9", askedByDevice()); status != http.StatusTooManyRequests {
		t.Errorf("one more of the address: %d", status)
	}
	if status, _ := w.postForm("/auth/device/code", "203.0.113.10", askedByDevice()); status != http.StatusOK {
		t.Errorf("another address: %d", status)
	}
	b := w.browser()
	for i := range limits.DeviceCodesOfAddress {
		if status, body := b.enter("BBBB-BBBB"); status != http.StatusBadRequest || strings.Contains(body, "BBBB") {
			t.Fatalf("wrong code %d: %d %s", i, status, body)
		}
		if status, _ := b.enter(code); i < limits.DeviceCodesOfAddress-1 && status != http.StatusOK {
			t.Fatalf("right code %d: %d", i, status)
		}
	}
	if status, _ := b.enter(code); status != http.StatusTooManyRequests {
		t.Errorf("the right code after too many wrong ones: %d", status)
	}
	w.clock.forward(limits.DeviceRequestsWindow)
	w.ask()
	w.clock.forward(limits.DeviceCodesWindow)
	_, code = w.ask()
	if status, _ := b.enter(code); status != http.StatusOK {
		t.Errorf("an hour later: %d", status)
	}
}

// A wrong request of a device stores nothing. Source: RFC 8628, 3.1; RFC 6749, 5.2.
func TestDeviceRequests(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	for about, row := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"another client":   {func(form url.Values) { form.Set("client_id", "x") }, "invalid_client"},
		"no client":        {func(form url.Values) { form.Del("client_id") }, "invalid_client"},
		"no challenge":     {func(form url.Values) { form.Del("code_challenge") }, "invalid_request"},
		"a plain one":      {func(form url.Values) { form.Set("code_challenge_method", "plain") }, "invalid_request"},
		"two challenges":   {func(form url.Values) { form.Add("code_challenge", "x") }, "invalid_request"},
		"a wrong host":     {func(form url.Values) { form.Set("hostname", "<script>") }, "invalid_request"},
		"a long host":      {func(form url.Values) { form.Set("hostname", strings.Repeat("x", 65)) }, "invalid_request"},
		"a host with line": {func(form url.Values) { form.Set("hostname", "a\nb") }, "invalid_request"},
	} {
		form := askedByDevice()
		row.change(form)
		if status, answer := w.postForm("/auth/device/code", "203.0.113.9", form); status != http.StatusBadRequest || answer["error"] != row.want {
			t.Errorf("%s: %d %v", about, status, answer)
		}
	}
	device := "x"
	for about, row := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"no device code": {func(form url.Values) { form.Del("device_code") }, "invalid_request"},
		"no verifier":    {func(form url.Values) { form.Del("code_verifier") }, "invalid_request"},
		"two codes":      {func(form url.Values) { form.Add("device_code", "y") }, "invalid_request"},
		"another client": {func(form url.Values) { form.Set("client_id", "x") }, "invalid_client"},
		"another grant":  {func(form url.Values) { form.Set("grant_type", "x") }, "unsupported_grant_type"},
	} {
		if status, answer := w.poll(device, row.change); status != http.StatusBadRequest || answer["error"] != row.want {
			t.Errorf("%s: %d %v", about, status, answer)
		}
	}
	if left := w.stored(logins.Resource); len(left) > 0 {
		t.Errorf("%d records", len(left))
	}
}

// Without a way to sign in with a browser, and where it is switched off, there are no codes. Source: ADR-0031.
func TestDeviceOff(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	info := func() map[string]any {
		var found struct {
			Methods struct{ Device map[string]any }
		}
		if err := json.Unmarshal([]byte(text(t, w.browser().send(base+"/auth/info", nil, "Accept", "application/json"))), &found); err != nil {
			t.Fatal(err)
		}
		return found.Methods.Device
	}
	if got := info(); got["enabled"] != true || got["deviceEndpoint"] != base+"/auth/device/code" || got["tokenEndpoint"] != base+"/auth/token" || got["issuer"] != base {
		t.Errorf("%v", got)
	}
	_, code := w.ask()
	w.env.DeviceLogin = settings.Off
	if got := info(); len(got) != 1 || got["enabled"] != false {
		t.Errorf("%v", got)
	}
	if status, _ := w.postForm("/auth/device/code", "203.0.113.9", askedByDevice()); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	if status, _ := w.browser().enter(code); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	if answer := w.browser().send(base+"/auth/device", nil); answer.StatusCode != http.StatusNotFound {
		t.Errorf("%d", answer.StatusCode)
	}
	w.env.DeviceLogin = settings.On
	w.config.Auth.OIDC = nil
	if status, _ := w.postForm("/auth/device/code", "203.0.113.9", askedByDevice()); status != http.StatusBadRequest {
		t.Errorf("no way to sign in: %d", status)
	}
}

// A device is allowed with a password as well, and the user may have been switched off before the device asks. Source: ADR-0031, ADR-0032.
func TestDeviceWithPassword(t *testing.T) {
	t.Parallel()
	w := local(t)
	w.handler = w.server.Mount(checkpassword.Function, confirmlogin.Function, exchangetoken.Function, requestdevice.Function, approvedevice.Function)
	var devices []string
	for range 2 {
		device, code := w.ask()
		b := w.browser()
		_, choice := b.enter(code)
		page := text(t, b.send(way(t, choice, method.PasswordID), nil))
		found := regexp.MustCompile(`name="id" value="([0-9a-f]+)"`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("%s", page)
		}
		typed := b.send(base+"/auth/password/login", url.Values{"id": {found[1]}, "username": {"ana"}, "password": {right}}, "Sec-Fetch-Site", "same-origin")
		if typed.StatusCode != http.StatusSeeOther || typed.Header.Get("Location") != base+"/auth/confirm?id="+found[1] {
			t.Fatalf("%d %s", typed.StatusCode, text(t, typed))
		}
		if answer := b.decide(found[1], "allow"); answer.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", answer.StatusCode, text(t, answer))
		}
		devices = append(devices, device)
	}
	if status, answer := w.poll(devices[0], nil); status != http.StatusOK || answer["user"] != "ana" {
		t.Errorf("%d %v", status, answer)
	}
	ana := w.user("ana")
	ana.Spec.Disabled = true
	if _, err := resource.Update(t.Context(), kinds.Users(w.env), resource.UpdateInput[*model.User]{Caller: root, Name: "ana", Object: ana}); err != nil {
		t.Fatal(err)
	}
	w.wantPoll("a disabled user", devices[1], "invalid_grant")
}

// What a device stores has no code in clear. Source: ADR-0031.
func TestDeviceSecrets(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	device, code := w.ask()
	for _, record := range w.stored(logins.Resource) {
		for _, secret := range []string{device, code, strings.ReplaceAll(code, "-", ""), verifier} {
			if strings.Contains(record.Name+record.Digest+string(record.Object), secret) {
				t.Errorf("the state has %q", secret)
			}
		}
	}
	b := w.browser()
	id, _ := b.toConfirm(code)
	b.decide(id, "allow")
	w.poll(device, nil)
	for _, secret := range []string{device, code, strings.ReplaceAll(code, "-", "")} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// errShort is the error of a source of randomness that has ended.
var errShort = errors.New("no more randomness")

// repeated is a source that gives the same bytes for ever.
type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// limited gives some bytes and then errShort.
type limited struct {
	from io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < len(p) {
		return 0, errShort
	}
	l.left -= len(p)
	return l.from.Read(p)
}

// Codes that are drawn twice belong to one device, and a source without randomness stores nothing. Source: RFC 8628, 6.1.
func TestDeviceCodesAreUnique(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	w.env.Random = repeated(7)
	if status, answer := w.postForm("/auth/device/code", "203.0.113.9", askedByDevice()); status != http.StatusOK || answer["user_code"] != "KKKK-KKKK" {
		t.Fatalf("%d %v", status, answer)
	}
	w.env.Random = io.MultiReader(strings.NewReader(strings.Repeat("x", 32)), strings.NewReader(strings.Repeat("\x07", 8)), repeated(9))
	if status, answer := w.postForm("/auth/device/code", "203.0.113.9", askedByDevice()); status != http.StatusOK || answer["user_code"] != "MMMM-MMMM" {
		t.Errorf("the second device has %d %v", status, answer)
	}
	w.env.Random = &limited{from: repeated(11), left: 32}
	if status, _ := w.postForm("/auth/device/code", "203.0.113.9", askedByDevice()); status != http.StatusInternalServerError {
		t.Errorf("without randomness: %d", status)
	}
	if left := w.stored(logins.Resource); len(left) != 2 {
		t.Errorf("%d records", len(left))
	}
}
