package model

// The values of OwnedAccessKey spec.type. Clients may set the first two; the others are the server's.
// Source: Spec 2.5 (`User`); the others: ADR-0005.
const (
	// AccessKeyTypeUser marks a key that its user manages. It is the default.
	AccessKeyTypeUser = "User"
	// AccessKeyTypeOther marks a key for a machine, such as the token of a kubeconfig.
	AccessKeyTypeOther = "Other"
	// AccessKeyTypeLogin marks the key of an interactive login.
	AccessKeyTypeLogin = "Login"
	// AccessKeyTypeReset marks a key that permits to set a new password.
	AccessKeyTypeReset = "Reset"
	// AccessKeyTypeOIDCRefreshToken marks a refresh token that was issued to an OIDC client.
	AccessKeyTypeOIDCRefreshToken = "OIDCRefreshToken"
	// AccessKeyTypeNetworkPeer marks the key of a peer in the platform's network.
	AccessKeyTypeNetworkPeer = "NetworkPeer"
	// AccessKeyTypeWorkspace marks the key inside a workspace.
	AccessKeyTypeWorkspace = "Workspace"
)
