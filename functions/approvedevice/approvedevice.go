// Package approvedevice is /auth/device: the page on which a person enters the code that a program without a browser shows. The
// person then signs in, and decides at /auth/confirm. Source: Spec 5.4; RFC 8628, 3.3 and 5.4; ADR-0031.
package approvedevice

import (
	"context"
	"errors"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/device"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/webpage"
)

// Deps is what the operation needs.
type Deps struct {
	Devices *device.Flow
	// Refused returns the reason for which sign-ins with a code are not possible. Nil: they are possible.
	Refused func() error
}

// Input is the request.
type Input = frame.FormInput

// show is GET: the page with the form. A code in the URL is filled in. Errors: Refusal.
func show(_ context.Context, deps Deps, in Input) (frame.FormResult, error) {
	if err := deps.Refused(); err != nil {
		return frame.FormResult{}, err
	}
	code, err := oauth.Parameter(in.Query, "user_code")
	if err != nil {
		return frame.FormResult{}, err
	}
	first := "Enter the code that the program shows which you have started."
	if code != "" {
		first = "Continue only if the program that you have started shows this code."
	}
	return frame.FormResult{Page: page(code, first)}, nil
}

// page is the page with the form.
func page(code, first string) *webpage.Page {
	return &webpage.Page{
		Title:  "Sign in on another device",
		Text:   []string{first, "If someone has sent you a code or a link, close this page: they would get an access key that acts as you."},
		Action: oauth.DevicePath,
		Fields: []webpage.Field{{Name: "user_code", Label: "Code", Type: "text", Autocomplete: "off", Value: code}},
		Buttons: []webpage.Button{
			{Name: "action", Value: "continue", Label: "Continue"},
		},
	}
}

// Do is POST: the code. The answer offers the ways to sign in. It returns the errors of device.Flow.EnterUserCode.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	code, err := oauth.Parameter(in.Form, "user_code")
	if err != nil {
		return frame.FormResult{}, err
	}
	ctx, recorder := annotations.WithRecorder(ctx)
	accepted, err := deps.Devices.EnterUserCode(ctx, code, in.Network)
	switch {
	case errors.Is(err, device.ErrUnknownUserCode):
		// The person tries again.
		return frame.FormResult{
			Status: 400, Page: page("", "The code is unknown or has expired. Compare it with the code that the program shows."), Annotations: recorder.Annotations(),
		}, nil
	case err != nil:
		return frame.FormResult{Annotations: recorder.Annotations()}, err
	}
	choice := &webpage.Page{
		Title: "Sign in on another device", Text: []string{"Sign in to see which device asks."}, Facts: []webpage.Fact{{Name: "Code", Value: accepted.Code}},
	}
	for _, way := range accepted.Methods {
		choice.Links = append(choice.Links, webpage.Link{Label: "Sign in: " + way.Label, Address: accepted.URL(way)})
	}
	return frame.FormResult{Page: choice, Cookies: []frame.Cookie{frame.Cookie(accepted.Cookie)}, Annotations: recorder.Annotations()}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "approvedevice",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.Form("GET", oauth.DevicePath, open, show), frame.Form("POST", oauth.DevicePath, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Devices: device.Open(env, accesskey.Open(env)), Refused: func() error { return device.Check(env) }}
}
