// Package confirmlogin is /auth/confirm: it asks the person who has signed in whether the program that asked may have a key, and sends
// the program a code. Source: Spec 5.4; ADR-0031.
package confirmlogin

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/webpage"
	"management.platform.sh/shared/credentials/signin"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Flow *signin.Flow }

// Input is the request.
type Input = frame.FormInput

// show is GET: the page with the question. Errors: those of signin.Flow.Pending.
func show(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id, err := signin.Parameter(in.Query, "id")
	if err != nil {
		return frame.FormResult{}, err
	}
	pending, err := deps.Flow.Pending(ctx, id, in.Cookies)
	if err != nil {
		return refused(err)
	}
	facts := []webpage.Fact{{Name: "User", Value: pending.User}}
	if pending.Account != "" {
		facts = append(facts, webpage.Fact{Name: "Account", Value: pending.Account})
	}
	return frame.FormResult{Page: &webpage.Page{
		Title: "Sign in on this computer?",
		Text: []string{
			"A program on this computer asks for an access key of the platform.",
			"Allow this only if you have just started it yourself, for example with platform login.",
		},
		Facts:   append(facts, webpage.Fact{Name: "Program", Value: pending.Origin}, webpage.Fact{Name: "Platform", Value: pending.Platform}),
		Action:  pending.Platform + "/auth/confirm",
		Hidden:  []webpage.Fact{{Name: "id", Value: pending.ID}},
		Buttons: []webpage.Button{{Name: "decision", Value: "allow", Label: "Allow"}, {Name: "decision", Value: "deny", Label: "Deny"}},
		Target:  pending.Origin,
	}, Annotations: map[string]string{signin.AnnotationUser: pending.User, signin.AnnotationOutcome: "asked"}}, nil
}

// Do is POST: the decision. Everything but allow denies. Errors: those of signin.Flow.Pending and Decide.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id, err := signin.Parameter(in.Form, "id")
	if err != nil {
		return frame.FormResult{}, err
	}
	decision, err := signin.Parameter(in.Form, "decision")
	if err != nil {
		return frame.FormResult{}, err
	}
	pending, err := deps.Flow.Pending(ctx, id, in.Cookies)
	if err != nil {
		return refused(err)
	}
	allow := decision == "allow"
	address, err := deps.Flow.Decide(ctx, pending, allow)
	if err != nil {
		return refused(err)
	}
	notes := map[string]string{signin.AnnotationUser: pending.User, signin.AnnotationOutcome: "denied"}
	if allow {
		notes[signin.AnnotationOutcome] = "allowed"
	}
	return frame.FormResult{Location: address, Cookies: []frame.Cookie{{Name: pending.Cookie}}, Annotations: notes}, nil
}

func refused(err error) (frame.FormResult, error) {
	notes := map[string]string{}
	signin.Annotate(notes, err)
	return frame.FormResult{Annotations: notes}, err
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "confirmlogin",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.Form("GET", "/auth/confirm", open, show), frame.Form("POST", "/auth/confirm", open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Flow: signin.Open(env)} }
