// Package requestdevice is POST /auth/device/code: a program without a browser gets a code, which a person enters in a browser
// elsewhere. Source: Spec 5.4; RFC 8628, 3.1 and 3.2; ADR-0031.
package requestdevice

import (
	"context"
	"errors"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/device"
	"management.platform.sh/shared/signin/oauth"
)

// Deps is what the operation needs.
type Deps struct{ Devices *device.Flow }

// Input is the request.
type Input = frame.FormInput

// Do stores the request and returns its codes. A wrong request is answered as OAuth says. It returns the errors of
// device.Flow.Authorize.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	ctx, recorder := annotations.WithRecorder(ctx)
	authorization, err := deps.Devices.Authorize(ctx, in.Form, in.Basic, in.Address, in.Network)
	if wrong := (*oauth.Error)(nil); errors.As(err, &wrong) {
		return frame.FormResult{Status: wrong.Status, JSON: wrong, Annotations: recorder.Annotations()}, nil
	}
	if err != nil {
		return frame.FormResult{Annotations: recorder.Annotations()}, err
	}
	return frame.FormResult{JSON: authorization, Annotations: recorder.Annotations()}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "requestdevice",
	Endpoints: []frame.Endpoint{frame.Form("POST", oauth.DevicePath+"/code", open, Do)},
}

func open(env *platform.Environment) Deps {
	return Deps{Devices: device.Open(env, accesskey.Open(env))}
}
