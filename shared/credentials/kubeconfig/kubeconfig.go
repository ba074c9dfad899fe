// Package kubeconfig renders kubeconfigs for virtual cluster instances: with an access key for that one instance, or with a
// client certificate of its signer. It stores nothing but the access key. A kubeconfig holds no path, no program and no option
// that disables the verification of TLS. Source: Spec 2.6, 4 row 1, 8; ADR-0017.
package kubeconfig

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/clusterca"
	"management.platform.sh/shared/signing/clusterca/csr"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// Subresource is the path of kubeconfigs below an instance.
const Subresource = instance.Kubeconfig

// The labels of access keys that are created for kubeconfigs. Source: ADR-0017.
const (
	NamespaceLabel = accesskey.OwnerNamespaceLabel
	NameLabel      = accesskey.OwnerNameLabel
)

const (
	// defaultLifetime is the lifetime of a credential if the request names none. Source: Spec 8.
	defaultLifetime = 24 * time.Hour
	// maxLifetime bounds the lifetime that a request may name.
	maxLifetime = 10 * 365 * 24 * time.Hour
)

// Definition is the kind of requests and answers. Source: Spec 2.6.
var Definition = &resource.Definition[*model.VirtualClusterInstanceKubeConfig]{
	Resource:   instance.Definition.Resource,
	Kind:       "VirtualClusterInstanceKubeConfig",
	Singular:   instance.Definition.Singular,
	ShortNames: instance.Definition.ShortNames,
	Namespaced: true,
	ReadAhead:  true,
	New:        func() *model.VirtualClusterInstanceKubeConfig { return &model.VirtualClusterInstanceKubeConfig{} },
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the virtual cluster."},
		{Name: "Expires", Type: "date", Description: "When the credential expires."},
	},
	Cells: func(object *model.VirtualClusterInstanceKubeConfig, _ time.Time) []any {
		expires := ""
		if end := object.Status.ExpirationTimestamp; end != nil {
			expires = end.UTC().Format(time.RFC3339)
		}
		return []any{object.Name, expires}
	},
}

// Renderer renders kubeconfigs. Set its fields once; after that it is safe for concurrent use. Use one Renderer for all requests
// of a process: it keeps the certificate authorities that it has decrypted.
type Renderer struct {
	Instances *instance.Registry
	Keys      *accesskey.Registry
	// Keyring returns the keys that decrypt the material of signers.
	Keyring func(context.Context) (*encryption.Keyring, error)
	// Project returns the project of a namespace; empty: the namespace belongs to no project.
	Project func(namespace string) string
	// Limits returns the platform's current limits on the life of credentials.
	Limits func() accesskey.Limits
	// Now is the clock.
	Now func() time.Time
	// Signing says which addresses virtual clusters that sign may have.
	Signing csr.Options

	authorities authorityCache
	once        sync.Once
	// tokens is the registry in which the tokens of kubeconfigs are created; see tokenRegistry.
	tokens *accesskey.Registry
}

// tokenRegistry returns the registry in which the tokens of kubeconfigs are created. It makes the registry at the first request,
// because Keys is complete by then: joined with the other kinds, and with the field manager.
func (r *Renderer) tokenRegistry() *accesskey.Registry {
	r.once.Do(func() { r.tokens = accesskey.ForKubeconfigs(r.Keys) })
	return r.tokens
}

// Input is a request for a kubeconfig.
type Input = resource.SubresourceInput[*model.VirtualClusterInstanceKubeConfig]

// Output is the answer.
type Output = resource.Result[*model.VirtualClusterInstanceKubeConfig]

// Render returns a kubeconfig. A dry run checks the request and creates nothing: its answer has no kubeconfig.
//
// Errors: NotFound for an instance that the caller may not use; Invalid for a certificateTTL that is negative or above the
// platform's cap and for a server that is not an https URL; BadRequest, which says what to set, if the instance is not set up for
// the request; Forbidden if the credential would permit more than the caller's credential; ServiceUnavailable or Timeout if the
// virtual cluster does not sign. On any error no credential exists. Source: Spec 2.6, 4 row 1; ADR-0017.
func (r *Renderer) Render(ctx context.Context, in Input) (Output, error) {
	vci, record, err := r.Instances.ReadAhead(ctx, in.Caller, in.Namespace, in.Name, in.Prefetched)
	if err != nil {
		return Output{}, err
	}
	if err := r.Instances.Admit(in.Caller, "create", Subresource, vci); err != nil {
		return Output{}, err
	}
	if prefix := in.Caller.Owner.Reserved(); prefix != "" {
		return Output{}, apierror.Forbidden(subresource, in.Name, identity.ReservedText(prefix), nil)
	}
	if problems := r.validate(&in.Object.Spec); len(problems) > 0 {
		return Output{}, apierror.Invalid(Definition.GroupVersionKind().GroupKind(), in.Name, problems)
	}
	server, ca, err := endpoint(&in.Object.Spec, vci)
	if err != nil {
		return Output{}, err
	}
	project := r.Project(in.Namespace)
	if project == "" {
		return Output{}, apierror.BadRequest(fmt.Sprintf(
			"namespace %q belongs to no project: it does not begin with the platform's projectNamespacePrefix", in.Namespace), nil)
	}
	life, err := r.newLifetime(in, instance.Duration(vci.Spec.Signer))
	if err != nil {
		return Output{}, err
	}
	checkedRequest := request{in: in, instance: vci, record: record, document: document{entry: in.Name + "-" + in.Namespace, server: server, ca: ca}, life: life, scope: instance.KubeconfigScope(project, in.Name)}
	var end time.Time
	if in.Object.Spec.ClientCert {
		signer, err := r.openSigner(ctx, checkedRequest)
		if err != nil {
			return Output{}, err
		}
		checkedRequest.document, end, err = r.certify(ctx, checkedRequest, signer)
		if err != nil {
			return Output{}, err
		}
		// Certificates that are signed here expire at the exact second. Virtual clusters back-date certificates, take time to
		// sign and have their own clocks.
		slack := time.Second
		if _, isCSR := signer.(*csr.Signer); isCSR {
			slack = min(2*clusterca.Backdate, life.duration/10)
		}
		warnings, err := r.checkEnd(life, end, slack)
		if err != nil {
			return Output{}, err
		}
		life.warnings = append(life.warnings, warnings...)
	} else if checkedRequest.document, end, err = r.createKey(ctx, checkedRequest); err != nil {
		return Output{}, err
	}
	answer := &model.VirtualClusterInstanceKubeConfig{Spec: in.Object.Spec}
	answer.ObjectMeta = metav1.ObjectMeta{Name: in.Name, Namespace: in.Namespace, CreationTimestamp: metav1.Time{Time: r.Now().UTC().Truncate(time.Second)}}
	answer.SetGroupVersionKind(Definition.GroupVersionKind())
	answer.Status.ExpirationTimestamp = &metav1.Time{Time: end.UTC()}
	if !in.DryRun {
		answer.Status.KubeConfig = checkedRequest.document.render()
	}
	return Output{Object: answer, Created: true, Warnings: life.warnings}, nil
}

// subresource is the subresource that refusals name.
var subresource = schema.GroupResource{Group: model.GroupName, Resource: instance.Definition.Resource.Resource + "/" + Subresource}

// request is a request that passed the checks, with the results of the checks.
type request struct {
	in       Input
	instance *model.VirtualClusterInstance
	// record is the record from which the instance was read.
	record   store.Record
	document document
	life     lifetime
	scope    *model.Scope
}

// validate returns everything that is wrong with the spec of a request.
func (r *Renderer) validate(spec *model.VirtualClusterInstanceKubeConfigSpec) field.ErrorList {
	var problems field.ErrorList
	if ttl := spec.CertificateTTLSeconds; ttl != nil {
		path := field.NewPath("spec", "certificateTTL")
		longest, whose := maxLifetime, "the longest possible"
		if limit := r.Limits().Max; limit > 0 && limit < longest {
			longest, whose = limit, "the platform's limit"
		}
		switch {
		case *ttl < 0:
			problems = append(problems, field.Invalid(path, *ttl, "must not be negative"))
		case *ttl > int64(longest/time.Second):
			problems = append(problems, field.Invalid(path, *ttl, fmt.Sprintf("must be at most %d seconds, %s", longest/time.Second, whose)))
		}
	}
	if spec.Server != "" {
		if err := clusterca.CheckServer(spec.Server); err != nil {
			problems = append(problems, field.Invalid(field.NewPath("spec", "server"), field.OmitValueType{}, err.Error()))
		}
	}
	return problems
}

// endpoint returns the server of the kubeconfig, and the authority that verifies the server.
func endpoint(spec *model.VirtualClusterInstanceKubeConfigSpec, vci *model.VirtualClusterInstance) (server string, ca []byte, err error) {
	if ingress := vci.Status.Ingress; ingress != nil {
		server, ca = "https://"+ingress.Host, ingress.CAData
	}
	if spec.Server != "" {
		// The request may have the scheme in capitals. The kubeconfig has it in lower case, because clients expect that.
		_, rest, _ := strings.Cut(spec.Server, ":")
		server = "https:" + rest
	}
	if server == "" {
		hint := "enable spec.accessPoint.ingress of the instance"
		if access := vci.Spec.AccessPoint; access != nil && access.Ingress != nil && access.Ingress.Enabled {
			hint = "it is enabled and not published yet: wait until status.ingress of the instance has it"
		}
		return "", nil, apierror.BadRequest("the virtual cluster has no ingress endpoint: "+hint+", or set spec.server", field.ErrorList{
			field.Required(field.NewPath("spec", "server"), "the instance has no ingress endpoint")})
	}
	return server, ca, nil
}

// lifetime is how long a credential lives.
type lifetime struct {
	// duration is how long the credential lives, in whole seconds.
	duration time.Duration
	// requested is the lifetime in the request to the signer. 0: the signer decides.
	requested time.Duration
	// limit is the longest lifetime that the credential may have. 0: there is no limit.
	limit    time.Duration
	warnings []string
}

// newLifetime returns how long the credential lives: as long as the request says, a day if it says nothing, and the signing
// duration for 0. The credential never lives longer than the platform's limit or the caller's access key.
func (r *Renderer) newLifetime(in Input, duration time.Duration) (lifetime, error) {
	requestedDuration := defaultLifetime
	ttl := in.Object.Spec.CertificateTTLSeconds
	if ttl != nil {
		requestedDuration = time.Duration(*ttl) * time.Second
	}
	signerDecides := ttl != nil && *ttl == 0
	if signerDecides {
		requestedDuration = duration
	}
	l := lifetime{duration: requestedDuration}
	shorten := func(maximum time.Duration, why string) {
		if maximum = maximum.Truncate(time.Second); maximum < l.duration {
			l.duration = maximum
			l.warnings = append(l.warnings, fmt.Sprintf("the credential expires after %s: %s", maximum, why))
		}
	}
	if in.Object.Spec.ClientCert {
		shorten(duration, "that is the signing duration of the virtual cluster")
	}
	applyLimit := func(maximum time.Duration, why string) {
		if l.limit == 0 || maximum < l.limit {
			l.limit = maximum
		}
		shorten(maximum, why)
	}
	if limit := r.Limits().Max; limit > 0 {
		applyLimit(limit, "that is the platform's limit")
	}
	if end := in.Caller.KeyExpires; !end.IsZero() {
		applyLimit(end.Sub(r.Now()), "the access key that asks for it expires then")
	}
	if l.duration < time.Second {
		return lifetime{}, apierror.Forbidden(subresource, in.Name, "the access key that asks for it expires within a second", nil)
	}
	if !signerDecides || l.duration != duration {
		l.requested = l.duration
	}
	return l, nil
}

// maxNames bounds how many names are tried for the access key of a kubeconfig. Each existing key of the instance takes one of 14
// million names.
const maxNames = 8

// createKey creates an access key for the instance, which owns the key. It stores the key last, when nothing else can fail.
func (r *Renderer) createKey(ctx context.Context, checked request) (document, time.Time, error) {
	rendered, in := checked.document, checked.in
	object := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: accesskey.KubeconfigPrefix + in.Name + "-",
			Labels:       map[string]string{NamespaceLabel: in.Namespace, NameLabel: in.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: instance.Definition.GroupVersionKind().GroupVersion().String(), Kind: instance.Definition.Kind,
				Name: in.Name, UID: checked.instance.UID,
			}},
		},
		Spec: model.OwnedAccessKeySpec{
			DisplayName: "kubeconfig of " + in.Namespace + "/" + in.Name,
			Type:        model.AccessKeyTypeKubeconfig,
			Groups:      ownGroups(in.Caller),
			TTLSeconds:  int64(checked.life.duration / time.Second),
			Scope:       checked.scope,
		},
	}
	input := resource.CreateInput[*model.OwnedAccessKey]{
		Caller: in.Caller, Object: object, Manager: in.Manager, DryRun: in.DryRun, Random: in.Random,
		Owners: map[types.UID]store.Record{checked.instance.UID: checked.record},
	}
	written, err := resource.Create(ctx, r.tokenRegistry(), input)
	// The server chose the name, so a name that is taken is not an error for the client.
	for attempt := 1; apierrors.IsAlreadyExists(err) && attempt < maxNames; attempt++ {
		written, err = resource.Create(ctx, r.tokenRegistry(), input)
	}
	if err != nil {
		return document{}, time.Time{}, fmt.Errorf("creating an access key for a kubeconfig: %w", err)
	}
	rendered.token = secret.String(written.Object.Spec.Key)
	return rendered, written.Object.Status.ExpirationTimestamp.Time, nil
}

// ownGroups returns the groups of a caller without the groups that follow from the owner and the groups that only the caller's
// key has. If no groups remain, the new key has no more rights than the caller, either: see Default of package accesskey.
func ownGroups(caller identity.Caller) []string {
	follows := slices.Concat(identity.New(caller.Owner, nil).Groups, caller.KeyGranted)
	return slices.DeleteFunc(identity.WithoutKubernetes(caller.Groups), func(group string) bool { return slices.Contains(follows, group) })
}

// openSigner returns the signer of an instance. It decrypts the material of the signer, unless the cache has the authority.
func (r *Renderer) openSigner(ctx context.Context, checked request) (clusterca.Signer, error) {
	notSetUp := func(why string) *apierror.Error {
		return apierror.BadRequest("the virtual cluster cannot sign client certificates: "+why, field.ErrorList{
			field.Invalid(field.NewPath("spec", "clientCert"), true, why)})
	}
	sealed, err := r.Instances.Parse(checked.record)
	if err != nil {
		return nil, err
	}
	ring, err := r.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	duration := instance.Duration(checked.instance.Spec.Signer)
	unusable := func(problem error) error {
		return notSetUp("the certificate authority in spec.signer.ca of the instance " + problem.Error() + "; set another one").Because(problem)
	}
	source := sourceOf(sealed, duration, ring)
	if cached := r.authorities.lookup(checked.record.Name, source); cached != nil {
		if problem := cached.Usable(); problem != nil {
			return nil, unusable(problem)
		}
		return cached, nil
	}
	material, err := instance.OpenMaterial(sealed, ring)
	if errors.Is(err, encryption.ErrUnknownKey) {
		return nil, notSetUp("spec.signer of the instance was encrypted with a key that the platform no longer has; set it again").Because(err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(material.Certificate) > 0:
		ca, wrongCertificate, wrongKey := clusterca.ParseCA(material.Certificate, material.Key, duration, r.Now)
		if problem := errors.Join(wrongCertificate, wrongKey); problem != nil {
			return nil, unusable(problem)
		}
		r.authorities.add(checked.record.Name, source, ca)
		return ca, nil
	case material.Kubeconfig != "":
		access, err := clusterca.ParseAccess(material.Kubeconfig.Reveal())
		if err != nil {
			return nil, notSetUp("spec.signer.kubeconfig of the instance " + err.Error()).Because(err)
		}
		return csr.New(access, r.Signing)
	default:
		return nil, notSetUp("set a certificate authority or a kubeconfig in spec.signer of the instance, or leave clientCert out")
	}
}

// certify makes a key pair and lets the signer sign its certificate: the user is the common name, and the user's groups are the
// organizations.
func (r *Renderer) certify(ctx context.Context, checked request, signer clusterca.Signer) (document, time.Time, error) {
	rendered, caller := checked.document, checked.in.Caller
	name := caller.Owner.Username()
	if _, isCSR := signer.(*csr.Signer); isCSR && checked.life.requested > 0 && checked.life.requested < csr.MinLifetime {
		return document{}, time.Time{}, apierror.Invalid(Definition.GroupVersionKind().GroupKind(), checked.in.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "certificateTTL"), int64(checked.life.requested/time.Second),
				strings.Join(append([]string{fmt.Sprintf("the virtual cluster signs for at least %d seconds", csr.MinLifetime/time.Second)}, checked.life.warnings...), "; "))})
	}
	if checked.in.DryRun {
		return rendered, r.Now().Add(checked.life.duration).Truncate(time.Second), nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return document{}, time.Time{}, fmt.Errorf("making a private key: %w", err)
	}
	chain, err := signer.Sign(ctx, clusterca.Request{
		Subject: pkix.Name{CommonName: name, Organization: identity.WithoutKubernetes(caller.Groups)},
		Key:     key, Lifetime: checked.life.requested,
	})
	if err != nil {
		return document{}, time.Time{}, translateSigningError(err)
	}
	for _, certificate := range chain {
		rendered.certificate = append(rendered.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})...)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return document{}, time.Time{}, fmt.Errorf("encoding a private key: %w", err)
	}
	rendered.key = secret.String(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	return rendered, chain[0].NotAfter, nil
}

// checkEnd checks the expiry of a certificate, which its signer decides. It refuses a certificate that has expired, or that lives
// longer than a credential of this caller may. It returns a warning for a certificate with another lifetime than requested.
// Differences up to slack are ignored. Source: ADR-0017.
func (r *Renderer) checkEnd(life lifetime, end time.Time, slack time.Duration) ([]string, error) {
	remaining := end.Sub(r.Now())
	switch shortfall := life.duration - remaining; {
	case remaining <= 0:
		return nil, apierror.Upstream("the virtual cluster signed an expired certificate; it was discarded")
	case life.limit > 0 && remaining > life.limit+slack:
		return nil, apierror.Upstream("the virtual cluster signed a certificate with a longer lifetime than permitted; it was discarded")
	case shortfall > slack:
		return []string{"the credential expires at " + end.UTC().Format(time.RFC3339) + ": its signer signs for no longer"}, nil
	case life.requested > 0 && shortfall < -slack:
		return []string{"the credential expires at " + end.UTC().Format(time.RFC3339) + ", later than requested: its signer decides"}, nil
	default:
		return nil, nil
	}
}

// translateSigningError returns the error that tells the caller why there is no certificate. The answer of the virtual cluster
// goes to the log only, because it may contain anything.
func translateSigningError(err error) error {
	switch {
	case errors.Is(err, clusterca.ErrUnusable):
		return apierror.BadRequest("the signer of the virtual cluster cannot be used; change spec.signer of the instance", nil).Because(err)
	case errors.Is(err, clusterca.ErrDenied):
		return apierror.Upstream("the virtual cluster denied the certificate").Because(err)
	case errors.Is(err, clusterca.ErrTimeout):
		return apierror.UpstreamTimeout("the virtual cluster did not sign the certificate in time").Because(err)
	case errors.Is(err, clusterca.ErrUnreachable):
		return apierror.Upstream("the virtual cluster cannot be reached to sign the certificate").Because(err)
	default:
		return err
	}
}
