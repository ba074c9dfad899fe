package model

// The values of OwnedAccessKey spec.type. Clients can set the first two; only the server sets the others.
// Source: Spec 2.5 (`User`); the others: ADR-0005.
const (
	// AccessKeyTypeUser marks a key that a user manages. It is the default.
	AccessKeyTypeUser = "User"
	// AccessKeyTypeOther marks a key for a machine.
	AccessKeyTypeOther = "Other"
	// AccessKeyTypeLogin marks a key that an interactive login created.
	AccessKeyTypeLogin = "Login"
	// AccessKeyTypeReset marks a key with which a user can set a new password.
	AccessKeyTypeReset = "Reset"
	// AccessKeyTypeOIDCRefreshToken marks a refresh token that was issued to an OIDC client.
	AccessKeyTypeOIDCRefreshToken = "OIDCRefreshToken"
	// AccessKeyTypeNetworkPeer marks the key of a peer in the platform's network.
	AccessKeyTypeNetworkPeer = "NetworkPeer"
	// AccessKeyTypeWorkspace marks the key that is available inside a workspace.
	AccessKeyTypeWorkspace = "Workspace"
	// AccessKeyTypeKubeconfig marks the token of a kubeconfig. On this API it can read its virtual cluster instance, and
	// nothing else. Source: ADR-0021.
	AccessKeyTypeKubeconfig = "Kubeconfig"
)
