// Package confirmlogin is /auth/confirm: it asks the person who has signed in whether the program that asked may have a key, and sends
// the program a code. A program on another device asks for its key itself. Source: Spec 5.4; ADR-0031.
package confirmlogin

import (
	"context"
	"strconv"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/authorize"
	"management.platform.sh/shared/signin/device"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/webpage"
)

// Deps is what the operation needs.
type Deps struct{ Consent *authorize.Consent }

// Input is the request.
type Input = frame.FormInput

// show is GET: the page with the question. It returns the errors of authorize.Consent.ConsentRequest.
func show(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id, err := oauth.Parameter(in.Query, "id")
	if err != nil {
		return frame.FormResult{}, err
	}
	consent, err := deps.Consent.ConsentRequest(ctx, id, in.Cookies)
	if err != nil {
		return refusalResult(ctx, err)
	}
	facts := []webpage.Fact{{Name: "User", Value: consent.User}}
	if consent.Account != "" {
		facts = append(facts, webpage.Fact{Name: "Account", Value: consent.Account})
	}
	page := &webpage.Page{
		Title: "Sign in on this computer?",
		Text: []string{
			"A program on this computer asks for an access key of the platform.",
			"Allow this only if you have just started it yourself, for example with platform login.",
		},
		Target: consent.Origin,
	}
	if consent.IsConsole {
		page.Title, page.Text = "Sign in to the console?", []string{
			"The console of the platform asks for an access key, which this browser keeps where no script can read it.",
			"Allow this only if you have just started it yourself.",
		}
	}
	if device := consent.Device; device != nil {
		page.Title, page.Text = "Sign in on another device?", []string{
			"A program on another device asks for an access key of the platform. Anyone who has that device can then act as you.",
			"Allow this only if you have just started the program yourself, and it shows this code. Never enter a code for someone else.",
		}
		facts = append(facts, webpage.Fact{Name: "Code", Value: device.Code})
		if device.Host != "" {
			facts = append(facts, webpage.Fact{Name: "Device", Value: device.Host + " (as it says itself)"})
		}
		address := device.Address + ", which is yours as well"
		if device.Address != in.Address {
			address = device.Address + ", which is not yours: yours is " + in.Address
		}
		facts = append(facts, webpage.Fact{Name: "Address", Value: address},
			webpage.Fact{Name: "Asked", Value: strconv.Itoa(int(device.Age/time.Second)) + " seconds ago"})
	} else {
		facts = append(facts, webpage.Fact{Name: "Program", Value: consent.Origin})
	}
	if consent.Unverified {
		page.Text = append(page.Text, "The identity provider's answer was not verified, because the configuration of the platform says so. Anybody can sign in as anybody.")
	}
	facts = append(facts, webpage.Fact{Name: "Platform", Value: consent.Platform})
	page.Facts = facts
	page.Action, page.Hidden = consent.Platform+"/auth/confirm", []webpage.Fact{{Name: "id", Value: consent.ID}}
	page.Buttons = []webpage.Button{{Name: "decision", Value: "allow", Label: "Allow"}, {Name: "decision", Value: "deny", Label: "Deny"}}
	_, recorder := annotations.WithRecorder(ctx)
	recorder.SetUser(consent.User)
	recorder.SetOutcome("asked")
	return frame.FormResult{Page: page, Annotations: recorder.Annotations()}, nil
}

// Do is POST: the decision. Everything but allow denies. It returns the errors of authorize.Consent.ConsentRequest and Decide.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id, err := oauth.Parameter(in.Form, "id")
	if err != nil {
		return frame.FormResult{}, err
	}
	decision, err := oauth.Parameter(in.Form, "decision")
	if err != nil {
		return frame.FormResult{}, err
	}
	consent, err := deps.Consent.ConsentRequest(ctx, id, in.Cookies)
	if err != nil {
		return refusalResult(ctx, err)
	}
	allow := decision == "allow"
	address, err := deps.Consent.Decide(ctx, consent, allow)
	if err != nil {
		return refusalResult(ctx, err)
	}
	_, recorder := annotations.WithRecorder(ctx)
	recorder.SetUser(consent.User)
	recorder.SetOutcome("denied")
	if allow {
		recorder.SetOutcome("allowed")
	}
	result := frame.FormResult{Location: address, Cookies: []frame.Cookie{{Name: consent.Cookie}}, Annotations: recorder.Annotations()}
	if consent.Device != nil {
		result.Page = &webpage.Page{Title: "You have refused", Text: []string{"The program gets no access key. You can close this page."}}
		if allow {
			result.Page = &webpage.Page{Title: "You are signed in", Text: []string{"The program continues within a few seconds. You can close this page."}}
		}
		result.Cookies = append(result.Cookies, frame.Cookie{Name: device.CookieName})
	}
	return result, nil
}

// refusalResult returns an error with its annotations.
func refusalResult(ctx context.Context, err error) (frame.FormResult, error) {
	_, recorder := annotations.WithRecorder(ctx)
	recorder.SetError(err)
	return frame.FormResult{Annotations: recorder.Annotations()}, err
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "confirmlogin",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.Form("GET", "/auth/confirm", open, show), frame.Form("POST", "/auth/confirm", open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Consent: authorize.OpenConsent(env, accesskey.Open(env))}
}
