// Package checkpassword is /auth/password/login: it signs a person in with the name and the password of their user. A browser gets a page
// to type them, and goes on as after any other sign-in. A program that has them gets a code, which it exchanges for an access key.
// Source: Spec 5.4; ADR-0032.
package checkpassword

import (
	"context"
	"errors"
	"net/url"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/password"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/passwordlogin"
	"management.platform.sh/shared/webpage"
)

// path is the path of the sign-in.
const path = "/auth/password/login"

// Deps is what the operation needs.
type Deps struct {
	// Start starts a login; see passwordlogin.Start.
	Start     func(ctx context.Context, query url.Values, cookies map[string]string) (passwordlogin.Page, []logins.Cookie, error)
	Passwords *passwordlogin.Login
}

// Input is the request.
type Input = frame.FormInput

// codeResponse is the answer to a program.
type codeResponse struct {
	// Code is what the program exchanges at /auth/token, within a minute.
	Code string `json:"code"`
}

// show is GET: the page with the form. It returns the errors of passwordlogin.Start.
func show(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	ctx, recorder := annotations.WithRecorder(ctx)
	recorder.SetConnector(method.PasswordID)
	recorder.SetOutcome("started")
	begun, cookies, err := deps.Start(ctx, in.Query, in.Cookies)
	if err != nil {
		recorder.SetError(err)
		return frame.FormResult{Annotations: recorder.Annotations()}, err
	}
	result := frame.FormResult{Page: page(begun.ID, "Sign in to "+begun.Platform+" with your password."), Annotations: recorder.Annotations()}
	for _, cookie := range cookies {
		result.Cookies = append(result.Cookies, frame.Cookie(cookie))
	}
	return result, nil
}

// page is the page with the form of an attempt.
func page(id string, text string) *webpage.Page {
	return &webpage.Page{
		Title: "Sign in", Text: []string{text}, Action: path, Hidden: []webpage.Fact{{Name: "id", Value: id}},
		Fields: []webpage.Field{
			{Name: "username", Label: "User name", Type: "text", Autocomplete: "username"},
			{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password"},
		},
		Buttons: []webpage.Button{{Name: "action", Value: "login", Label: "Sign in"}},
	}
}

// Do is POST: the name and the password, from the page or from a program. It returns the errors of passwordlogin.Login.HandleForm
// and IssueCode.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	ctx, recorder := annotations.WithRecorder(ctx)
	if !in.Form.Has("id") {
		code, err := deps.Passwords.IssueCode(ctx, in.Form, in.Network)
		if err != nil {
			return frame.FormResult{Annotations: recorder.Annotations()}, err
		}
		return frame.FormResult{JSON: codeResponse{code}, Annotations: recorder.Annotations()}, nil
	}
	address, err := deps.Passwords.HandleForm(ctx, in.Form, in.Cookies, in.Network)
	switch {
	case errors.Is(err, passwordlogin.ErrPassword):
		// The person tries again.
		return frame.FormResult{
			Status: 401, Page: page(in.Form.Get("id"), "The user name or the password is wrong."), Annotations: recorder.Annotations(),
		}, nil
	case err != nil:
		return frame.FormResult{Annotations: recorder.Annotations()}, err
	}
	return frame.FormResult{Location: address, Annotations: recorder.Annotations()}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "checkpassword",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.Form("GET", path, open, show), frame.Form("POST", path, open, Do).AlsoJSON().Sharing(fairness.Heavy),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{
		Start: func(ctx context.Context, query url.Values, cookies map[string]string) (passwordlogin.Page, []logins.Cookie, error) {
			return passwordlogin.Start(ctx, env, query, cookies)
		},
		Passwords: passwordlogin.Open(env, password.Open(env, user.Open(env))),
	}
}
