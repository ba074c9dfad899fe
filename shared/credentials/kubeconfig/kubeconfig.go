// Package kubeconfig makes kubeconfigs for virtual cluster instances: with an access key that is good for that one
// instance, or with a client certificate of its signer. Nothing is kept of either but what the state of access keys keeps;
// a kubeconfig holds no path, no program and no way around TLS. Source: Spec 2.6, 4 row 1, 8; ADR-0017.
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
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth/scope"
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

// Subresource is where kubeconfigs are asked for, below an instance.
const Subresource = "kubeconfig"

// The labels of the access keys that are made for kubeconfigs. Source: ADR-0017.
const (
	NamespaceLabel = accesskey.OwnerNamespaceLabel
	NameLabel      = model.GroupName + "/virtualclusterinstance"
)

const (
	// defaultLifetime is that of a credential for which nothing is asked. Source: Spec 8.
	defaultLifetime = 24 * time.Hour
	// maxLifetime bounds what may be asked for.
	maxLifetime = 10 * 365 * 24 * time.Hour
)

// Definition is the kind of what is asked for and answered. Source: Spec 2.6.
var Definition = &resource.Definition[*model.VirtualClusterInstanceKubeConfig]{
	Resource:   instance.Definition.Resource,
	Kind:       "VirtualClusterInstanceKubeConfig",
	Singular:   instance.Definition.Singular,
	ShortNames: instance.Definition.ShortNames,
	Namespaced: true,
	New:        func() *model.VirtualClusterInstanceKubeConfig { return &model.VirtualClusterInstanceKubeConfig{} },
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the virtual cluster."},
		{Name: "Expires", Type: "date", Description: "When the credential ends."},
	},
	Cells: func(object *model.VirtualClusterInstanceKubeConfig, _ time.Time) []any {
		expires := ""
		if end := object.Status.ExpirationTimestamp; end != nil {
			expires = end.UTC().Format(time.RFC3339)
		}
		return []any{object.Name, expires}
	},
}

// Maker makes kubeconfigs. Its fields are set once.
type Maker struct {
	Instances *instance.Registry
	Keys      *accesskey.Registry
	// Keyring returns the keys that open the material of signers.
	Keyring func(context.Context) (*encryption.Keyring, error)
	// Project is the project whose namespace that is.
	Project func(namespace string) string
	// Limits are the platform's on the life of credentials.
	Limits func() accesskey.Limits
	// Now is the clock, and Random where bearers come from.
	Now    func() time.Time
	Random io.Reader
	// Signing is where virtual clusters that sign may be.
	Signing csr.Options
}

// Input is a request for a kubeconfig.
type Input = resource.SubresourceInput[*model.VirtualClusterInstanceKubeConfig]

// Output is the answer.
type Output = resource.Result[*model.VirtualClusterInstanceKubeConfig]

// Make answers with a kubeconfig. A dry run checks and makes nothing: its answer has no kubeconfig.
//
// Errors: NotFound for an instance that the caller may not use; Invalid for a certificateTTL that is negative or above the
// platform's cap and for a server that is no https URL; BadRequest where the instance is not set up for what is asked, with
// what is to be done; Forbidden where the credential would do more than the caller's; ServiceUnavailable or Timeout where
// the virtual cluster does not sign. On any error there is no credential. Source: Spec 2.6, 4 row 1; ADR-0017.
func (m *Maker) Make(ctx context.Context, in Input) (Output, error) {
	found, record, err := m.Instances.Read(ctx, in.Caller, in.Namespace, in.Name)
	if err != nil {
		return Output{}, err
	}
	if !instance.May(in.Caller, instance.Use, found) {
		return Output{}, apierror.NotFound(m.Instances.Definition.GroupResource(), in.Name)
	}
	if problems := m.validate(&in.Object.Spec); len(problems) > 0 {
		return Output{}, apierror.Invalid(Definition.GroupVersionKind().GroupKind(), in.Name, problems)
	}
	server, ca, err := endpoint(&in.Object.Spec, found)
	if err != nil {
		return Output{}, err
	}
	project := m.Project(in.Namespace)
	if project == "" {
		return Output{}, apierror.BadRequest(fmt.Sprintf("the namespace %q is of no project, as the platform's projectNamespacePrefix has it now: register the virtual cluster in its project's",
			in.Namespace), nil)
	}
	narrowed := &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: project, VirtualCluster: in.Name}}}
	if excess := scope.Exceeds(narrowed, in.Caller.Scope, field.NewPath("scope")); len(excess) > 0 {
		return Output{}, apierror.Forbidden(part, in.Name, excess.ToAggregate().Error(), excess)
	}
	life, err := m.lifetime(in, instance.Duration(found.Spec.Signer))
	if err != nil {
		return Output{}, err
	}
	order := order{in: in, instance: found, document: document{server: server, ca: ca}, life: life, scope: narrowed}
	var end time.Time
	if in.Object.Spec.ClientCert {
		material, err := m.material(ctx, record, found)
		if err != nil {
			return Output{}, err
		}
		order.document, end, err = m.certify(ctx, order, material)
		if err != nil {
			return Output{}, err
		}
		// We sign to the second. Virtual clusters back-date, take their time and have clocks of their own.
		slack := time.Second
		if _, asks := material.(*csr.Signer); asks {
			slack = min(2*clusterca.Backdate, life.lasts/10)
		}
		warnings, err := m.judge(life, end, slack)
		if err != nil {
			return Output{}, err
		}
		life.warnings = append(life.warnings, warnings...)
	} else if order.document, end, err = m.key(ctx, order); err != nil {
		return Output{}, err
	}
	answer := &model.VirtualClusterInstanceKubeConfig{Spec: in.Object.Spec}
	answer.ObjectMeta = metav1.ObjectMeta{Name: in.Name, Namespace: in.Namespace, CreationTimestamp: metav1.Time{Time: m.Now().UTC().Truncate(time.Second)}}
	answer.SetGroupVersionKind(Definition.GroupVersionKind())
	answer.Status.ExpirationTimestamp = &metav1.Time{Time: end.UTC()}
	if !in.DryRun {
		if answer.Status.KubeConfig, err = order.document.render(); err != nil {
			return Output{}, err
		}
	}
	return Output{Object: answer, Created: true, Warnings: life.warnings}, nil
}

// part is the resource that refusals name.
var part = schema.GroupResource{Group: model.GroupName, Resource: instance.Definition.Resource.Resource + "/" + Subresource}

// order is a request that was found good.
type order struct {
	in       Input
	instance *model.VirtualClusterInstance
	document document
	life     life
	scope    *model.Scope
}

// validate returns all that is wrong with what is asked for.
func (m *Maker) validate(spec *model.VirtualClusterInstanceKubeConfigSpec) field.ErrorList {
	var problems field.ErrorList
	if ttl := spec.CertificateTTLSeconds; ttl != nil {
		path := field.NewPath("spec", "certificateTTL")
		most, whose := maxLifetime, "that there may be"
		if limit := m.Limits().Max; limit > 0 && limit < most {
			most, whose = limit, "that the platform permits"
		}
		switch {
		case *ttl < 0:
			problems = append(problems, field.Invalid(path, *ttl, "must not be negative"))
		case *ttl > int64(most/time.Second):
			problems = append(problems, field.Invalid(path, *ttl, fmt.Sprintf("must be at most %d seconds, the longest %s", most/time.Second, whose)))
		}
	}
	if spec.Server != "" {
		if err := clusterca.CheckServer(spec.Server); err != nil {
			problems = append(problems, field.Invalid(field.NewPath("spec", "server"), field.OmitValueType{}, err.Error()))
		}
	}
	return problems
}

// endpoint is where the kubeconfig leads to, and the authority that the server is verified with.
func endpoint(spec *model.VirtualClusterInstanceKubeConfigSpec, found *model.VirtualClusterInstance) (server string, ca []byte, err error) {
	if at := found.Status.Ingress; at != nil {
		server, ca = "https://"+at.Host, at.CAData
	}
	if spec.Server != "" {
		// It may be in capitals, which clients write in small letters.
		_, rest, _ := strings.Cut(spec.Server, ":")
		server = "https:" + rest
	}
	if server == "" {
		todo := "enable spec.accessPoint.ingress of the instance"
		if at := found.Spec.AccessPoint; at != nil && at.Ingress != nil && at.Ingress.Enabled {
			todo = "it is asked for, and status.ingress of the instance does not have it: wait until it is published"
		}
		return "", nil, apierror.BadRequest("the virtual cluster has no ingress endpoint: "+todo+", or name spec.server", field.ErrorList{
			field.Required(field.NewPath("spec", "server"), "there is no ingress endpoint to take it from")})
	}
	return server, ca, nil
}

// life is how long a credential lives.
type life struct {
	// lasts is how long, in whole seconds, and asked is what is asked of a signer: 0 leaves it to that. Most is what it may
	// never exceed; 0: there is no bound.
	lasts, asked, most time.Duration
	warnings           []string
}

// lifetime is how long the credential lives: as long as is asked for, a day where nothing is asked, the signing duration
// for 0; never longer than the platform permits, nor than the credential that asks.
func (m *Maker) lifetime(in Input, duration time.Duration) (life, error) {
	wanted := defaultLifetime
	ttl := in.Object.Spec.CertificateTTLSeconds
	if ttl != nil {
		wanted = time.Duration(*ttl) * time.Second
	}
	signers := ttl != nil && *ttl == 0
	if signers {
		wanted = duration
	}
	l := life{lasts: wanted}
	shorten := func(most time.Duration, why string) {
		if most = most.Truncate(time.Second); most < l.lasts {
			l.lasts = most
			l.warnings = append(l.warnings, fmt.Sprintf("the credential ends after %s: %s", most, why))
		}
	}
	if in.Object.Spec.ClientCert {
		shorten(duration, "that is the signing duration of the virtual cluster")
	}
	bound := func(most time.Duration, why string) {
		if l.most == 0 || most < l.most {
			l.most = most
		}
		shorten(most, why)
	}
	if limit := m.Limits().Max; limit > 0 {
		bound(limit, "the platform permits no more")
	}
	if end := in.Caller.KeyExpires; !end.IsZero() {
		bound(end.Sub(m.Now()), "it does not outlive the access key that asks for it")
	}
	if l.lasts < time.Second {
		return life{}, apierror.Forbidden(part, in.Name, "the access key that asks ends within a second", nil)
	}
	if !signers || l.lasts != duration {
		l.asked = l.lasts
	}
	return l, nil
}

// key makes an access key that is good for the one instance, belongs to it and goes with it. The key is stored last,
// when all else is known to be well.
func (m *Maker) key(ctx context.Context, order order) (document, time.Time, error) {
	made, in := order.document, order.in
	random := in.Random
	if random == nil {
		random = m.Random
	}
	bearer, err := accesskey.NewBearer(random)
	if err != nil {
		return document{}, time.Time{}, err
	}
	made.token = bearer
	if _, err := made.render(); err != nil {
		return document{}, time.Time{}, err
	}
	object := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "kubeconfig-" + in.Name + "-",
			Labels:       map[string]string{NamespaceLabel: in.Namespace, NameLabel: in.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: instance.Definition.GroupVersionKind().GroupVersion().String(), Kind: instance.Definition.Kind,
				Name: in.Name, UID: order.instance.UID,
			}},
		},
		Spec: model.OwnedAccessKeySpec{
			DisplayName: "kubeconfig of " + in.Namespace + "/" + in.Name,
			Type:        model.AccessKeyTypeOther,
			Groups:      own(in.Caller),
			Key:         bearer.Reveal(),
			TTLSeconds:  int64(order.life.lasts / time.Second),
			Scope:       order.scope,
		},
	}
	written, err := resource.Create(ctx, m.Keys, resource.CreateInput[*model.OwnedAccessKey]{
		Caller: in.Caller, Object: object, Manager: in.Manager, DryRun: in.DryRun, Random: in.Random,
	})
	if err != nil {
		return document{}, time.Time{}, fmt.Errorf("making an access key for a kubeconfig: %w", err)
	}
	return made, accesskey.Expiry(written.Object, time.Time{}, m.Limits()), nil
}

// own are the groups that a caller has beside those that everybody with his name has.
func own(caller identity.Caller) []string {
	follows := identity.New(caller.Owner, nil).Groups
	return slices.DeleteFunc(slices.Clone(caller.Groups), func(group string) bool {
		return slices.Contains(follows, group) || strings.HasPrefix(group, "system:")
	})
}

// material opens what the signer of an instance is made of.
func (m *Maker) material(ctx context.Context, record store.Record, found *model.VirtualClusterInstance) (clusterca.Signer, error) {
	setUp := func(why string) *apierror.Error {
		return apierror.BadRequest("the virtual cluster cannot sign client certificates: "+why, field.ErrorList{
			field.Invalid(field.NewPath("spec", "clientCert"), true, why)})
	}
	sealed, err := m.Instances.Parse(record)
	if err != nil {
		return nil, err
	}
	ring, err := m.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	material, err := instance.OpenMaterial(sealed, ring)
	if errors.Is(err, encryption.ErrUnknownKey) {
		return nil, setUp("spec.signer of the instance was encrypted with a key that the platform has no more; give it again").Because(err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(material.Certificate) > 0:
		ca, wrongCertificate, wrongKey := clusterca.ParseCA(material.Certificate, material.Key, instance.Duration(found.Spec.Signer), m.Now)
		if err := errors.Join(wrongCertificate, wrongKey); err != nil {
			return nil, setUp("the certificate authority in spec.signer.ca of the instance " + err.Error() + "; give another one").Because(err)
		}
		return ca, nil
	case material.Kubeconfig != "":
		access, err := clusterca.ParseAccess(material.Kubeconfig.Reveal())
		if err != nil {
			return nil, setUp("spec.signer.kubeconfig of the instance " + err.Error()).Because(err)
		}
		return csr.New(access, m.Signing)
	default:
		return nil, setUp("give spec.signer of the instance a certificate authority or a kubeconfig, or leave clientCert out")
	}
}

// certify makes a key pair and has its certificate signed: the user is the common name, his groups are the organisations.
func (m *Maker) certify(ctx context.Context, order order, by clusterca.Signer) (document, time.Time, error) {
	made, caller := order.document, order.in.Caller
	name := caller.Owner.Username()
	if strings.HasPrefix(name, "system:") {
		return document{}, time.Time{}, apierror.Forbidden(part, order.in.Name, "names that begin with system: are Kubernetes' own", nil)
	}
	if _, asks := by.(*csr.Signer); asks && order.life.asked > 0 && order.life.asked < csr.MinLifetime {
		return document{}, time.Time{}, apierror.Invalid(Definition.GroupVersionKind().GroupKind(), order.in.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "certificateTTL"), int64(order.life.asked/time.Second),
				strings.Join(append([]string{fmt.Sprintf("the virtual cluster signs for %d seconds at least", csr.MinLifetime/time.Second)}, order.life.warnings...), "; "))})
	}
	if order.in.DryRun {
		return made, m.Now().Add(order.life.lasts).Truncate(time.Second), nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return document{}, time.Time{}, fmt.Errorf("making a private key: %w", err)
	}
	groups := slices.DeleteFunc(slices.Clone(caller.Groups), func(group string) bool { return strings.HasPrefix(group, "system:") })
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: name, Organization: groups},
	}, key)
	if err != nil {
		return document{}, time.Time{}, fmt.Errorf("making a request for a certificate: %w", err)
	}
	chain, err := by.Sign(ctx, clusterca.Request{CSR: request, Lifetime: order.life.asked})
	if err != nil {
		return document{}, time.Time{}, refusal(err)
	}
	for _, each := range chain {
		made.certificate = append(made.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: each.Raw})...)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return document{}, time.Time{}, fmt.Errorf("encoding a private key: %w", err)
	}
	made.key = secret.String(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	return made, chain[0].NotAfter, nil
}

// judge looks at when a certificate ends, which its signer decides. What is over, or lives longer than a credential of this
// caller may, is not handed out; what ends otherwise than was asked comes with a warning. Slack is how far off is no matter.
// Source: ADR-0017.
func (m *Maker) judge(life life, end time.Time, slack time.Duration) ([]string, error) {
	left := end.Sub(m.Now())
	switch early := life.lasts - left; {
	case left <= 0:
		return nil, apierror.Upstream("the virtual cluster signed a certificate that is over already")
	case life.most > 0 && left > life.most+slack:
		return nil, apierror.Upstream("the virtual cluster signed a certificate that lives longer than it may; it was thrown away")
	case early > slack:
		return []string{"the credential ends at " + end.UTC().Format(time.RFC3339) + ": its signer signs for no longer"}, nil
	case life.asked > 0 && early < -slack:
		return []string{"the credential ends at " + end.UTC().Format(time.RFC3339) + ", later than was asked: its signer decides"}, nil
	default:
		return nil, nil
	}
}

// refusal says to the caller what became of a certificate. What the virtual cluster said is for the log: it may be
// anything.
func refusal(err error) error {
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
