// Package catalog lists every function of the API, in wire order: the functions that a client needs first come first.
// The local runner mounts the list, and generators and tests read it. A function that is not listed is not deployed.
// Source: ADR-0001.
package catalog

import (
	"management.platform.sh/functions/authorizescopes"
	"management.platform.sh/functions/collectgarbage"
	"management.platform.sh/functions/createaccesskey"
	"management.platform.sh/functions/createvirtualclusterinstance"
	"management.platform.sh/functions/deleteaccesskey"
	"management.platform.sh/functions/deletetoken"
	"management.platform.sh/functions/deletevirtualclusterinstance"
	"management.platform.sh/functions/discoverapi"
	"management.platform.sh/functions/evaluatepatches"
	"management.platform.sh/functions/expirekeys"
	"management.platform.sh/functions/expiretokens"
	"management.platform.sh/functions/getaccesskey"
	"management.platform.sh/functions/gettoken"
	"management.platform.sh/functions/getvirtualclusterinstance"
	"management.platform.sh/functions/issuetoken"
	"management.platform.sh/functions/listaccesskeys"
	"management.platform.sh/functions/listtokens"
	"management.platform.sh/functions/listvirtualclusterinstances"
	"management.platform.sh/functions/patchaccesskey"
	"management.platform.sh/functions/patchconfig"
	"management.platform.sh/functions/patchvirtualclusterinstance"
	"management.platform.sh/functions/publishkeys"
	"management.platform.sh/functions/readconfig"
	"management.platform.sh/functions/renderkubeconfig"
	"management.platform.sh/functions/reviewtokens"
	"management.platform.sh/functions/revokecredentials"
	"management.platform.sh/functions/rollbackconfig"
	"management.platform.sh/functions/rotatesigningkeys"
	"management.platform.sh/functions/updateaccesskey"
	"management.platform.sh/functions/updateconfig"
	"management.platform.sh/functions/updatevirtualclusterinstance"
	"management.platform.sh/functions/whoami"
	"management.platform.sh/shared/api/frame"
)

// Functions are all of them.
var Functions = []*frame.Function{
	discoverapi.Function,
	whoami.Function,
	createaccesskey.Function,
	getaccesskey.Function,
	listaccesskeys.Function,
	updateaccesskey.Function,
	patchaccesskey.Function,
	deleteaccesskey.Function,
	evaluatepatches.Function,
	createvirtualclusterinstance.Function,
	getvirtualclusterinstance.Function,
	listvirtualclusterinstances.Function,
	updatevirtualclusterinstance.Function,
	patchvirtualclusterinstance.Function,
	deletevirtualclusterinstance.Function,
	renderkubeconfig.Function,
	readconfig.Function,
	updateconfig.Function,
	patchconfig.Function,
	rollbackconfig.Function,
	issuetoken.Function,
	gettoken.Function,
	listtokens.Function,
	deletetoken.Function,
	revokecredentials.Function,
	publishkeys.Function,
	reviewtokens.Function,
	authorizescopes.Function,
	expirekeys.Function,
	expiretokens.Function,
	rotatesigningkeys.Function,
	collectgarbage.Function,
}
