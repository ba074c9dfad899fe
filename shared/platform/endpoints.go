package platform

// Endpoints replace the public addresses of connectors whose settings have no address. Each is an https URL without a
// slash at its end. Empty: the public address. Tests set them. Source: ADR-0035.
type Endpoints struct {
	// GitForge1 is the web address of the first code host, and GitForge1API the address of its API.
	GitForge1, GitForge1API string
	// GitForge2 is the address of the second code host.
	GitForge2 string
	// IDP1 is the issuer of the first identity provider, and IDP1Directory the API that lists its groups.
	IDP1, IDP1Directory string
	// IDP2 is the address of the second identity provider, and IDP2Directory the API that lists its groups.
	IDP2, IDP2Directory string
	// CAFile is the path of root certificates in PEM format for these addresses. Empty: the system's root certificates.
	CAFile string
}
