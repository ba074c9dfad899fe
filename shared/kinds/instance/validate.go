package instance

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/destination"
	"management.platform.sh/shared/signing/clusterca"
)

// The limits on the fields of an instance, in bytes and entries. Source: ADR-0017.
const (
	maxAccess   = 100
	maxNames    = 256
	maxMaterial = 64 << 10
	maxDuration = 10 * 365 * 24 * time.Hour
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
	signerPath = specPath.Child("signer")

	verbs       = []string{Use, Update, Delete, All}
	signerTypes = []string{model.InstanceSignerTypeCA, model.InstanceSignerTypeKubeconfig, model.InstanceSignerTypeNone}
	phases      = []string{model.InstancePending, model.InstanceReady, model.InstanceFailed}
)

// Validate returns everything that is wrong with an instance. Old is nil for a new instance.
func (r *rules) Validate(instance, old *model.VirtualClusterInstance) field.ErrorList {
	var problems field.ErrorList
	if old == nil {
		path := field.NewPath("metadata")
		if namespace := instance.Namespace; namespace != "" && r.Project(namespace) == "" {
			problems = append(problems, field.Invalid(path.Child("namespace"), namespace,
				"belongs to no project: create the instance in the namespace of its project, such as p-<project>"))
		}
		// The name becomes the value of a label and a part of host names.
		if name := instance.Name; len(validation.NameIsDNSSubdomain(name, false)) == 0 {
			for _, why := range utilvalidation.IsDNS1123Label(name) {
				problems = append(problems, field.Invalid(path.Child("name"), name, why))
			}
		}
	}
	spec := &instance.Spec
	problems = append(problems, resource.ValidateTexts(spec.DisplayName, spec.Description, specPath)...)
	problems = append(problems, validateOwner(spec.Owner)...)
	problems = append(problems, validateClusterRef(spec.ClusterRef)...)
	problems = append(problems, validateAccessPoint(spec.AccessPoint)...)
	problems = append(problems, validateAccess(spec.Access)...)
	return append(problems, r.validateSigner(spec.Signer, old)...)
}

func validateOwner(owner *model.InstanceOwner) field.ErrorList {
	if owner == nil {
		return nil
	}
	path := specPath.Child("owner")
	switch {
	case owner.User == "" && owner.Team == "":
		return field.ErrorList{field.Required(path, "set user or team, or leave the owner out")}
	case owner.User != "" && owner.Team != "":
		return field.ErrorList{field.Invalid(path.Child("team"), owner.Team, "an instance has one owner: spec.owner.user is also set")}
	}
	return append(resource.ValidateText(owner.User, utilvalidation.DNS1123SubdomainMaxLength, path.Child("user")),
		resource.ValidateText(owner.Team, utilvalidation.DNS1123SubdomainMaxLength, path.Child("team"))...)
}

func validateClusterRef(instanceClusterRef *model.InstanceClusterRef) field.ErrorList {
	if instanceClusterRef == nil {
		return nil
	}
	var problems field.ErrorList
	path := specPath.Child("clusterRef")
	for _, each := range []struct {
		name, value string
		check       func(string) []string
	}{
		{"cluster", instanceClusterRef.Cluster, utilvalidation.IsDNS1123Subdomain},
		{"namespace", instanceClusterRef.Namespace, utilvalidation.IsDNS1123Label},
		{"virtualCluster", instanceClusterRef.VirtualCluster, utilvalidation.IsDNS1123Subdomain},
	} {
		if each.value == "" {
			continue
		}
		for _, why := range each.check(each.value) {
			problems = append(problems, field.Invalid(path.Child(each.name), each.value, why))
		}
	}
	return problems
}

func validateAccessPoint(instanceAccessPoint *model.InstanceAccessPoint) field.ErrorList {
	if instanceAccessPoint == nil || instanceAccessPoint.Ingress == nil {
		return nil
	}
	path := specPath.Child("accessPoint", "ingress")
	if instanceAccessPoint.Ingress.Host == "" {
		problems := validateCAData(instanceAccessPoint.Ingress.CAData, path.Child("caData"))
		if instanceAccessPoint.Ingress.Enabled {
			problems = append(problems, field.Required(path.Child("host"), "an enabled ingress needs a host"))
		}
		return problems
	}
	return validateIngress(instanceAccessPoint.Ingress.Host, instanceAccessPoint.Ingress.CAData, path)
}

func validateIngress(host string, caData []byte, path *field.Path) field.ErrorList {
	problems := validateCAData(caData, path.Child("caData"))
	if err := clusterca.CheckHost(host); err != nil {
		problems = append(problems, field.Invalid(path.Child("host"), host, err.Error()))
	}
	return problems
}

func validateCAData(data []byte, path *field.Path) field.ErrorList {
	switch {
	case len(data) == 0:
		return nil
	case len(data) > maxMaterial:
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, maxMaterial)}
	}
	if _, err := clusterca.ParseCertificates(data); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

func validateAccess(access []model.InstanceAccess) field.ErrorList {
	path := specPath.Child("access")
	if len(access) > maxAccess {
		return field.ErrorList{field.TooMany(path, len(access), maxAccess)}
	}
	var problems field.ErrorList
	for i, entry := range access {
		at := path.Index(i)
		if len(entry.Verbs) == 0 {
			problems = append(problems, field.Required(at.Child("verbs"), "one of "+strings.Join(verbs, ", ")))
		}
		for j, verb := range entry.Verbs {
			switch {
			case !slices.Contains(verbs, verb):
				problems = append(problems, field.NotSupported(at.Child("verbs").Index(j), verb, verbs))
			case slices.Contains(entry.Verbs[:j], verb):
				problems = append(problems, field.Duplicate(at.Child("verbs").Index(j), verb))
			}
		}
		if len(entry.Users)+len(entry.Teams) == 0 {
			problems = append(problems, field.Required(at.Child("users"), "an entry needs users or teams"))
		}
		problems = append(problems, validateNames(entry.Users, at.Child("users"))...)
		problems = append(problems, validateNames(entry.Teams, at.Child("teams"))...)
	}
	return problems
}

func validateNames(names []string, path *field.Path) field.ErrorList {
	if len(names) > maxNames {
		return field.ErrorList{field.TooMany(path, len(names), maxNames)}
	}
	var problems field.ErrorList
	for i, name := range names {
		switch {
		case name == "":
			problems = append(problems, field.Required(path.Index(i), "must have a name"))
		case slices.Contains(names[:i], name):
			problems = append(problems, field.Duplicate(path.Index(i), name))
		default:
			problems = append(problems, resource.ValidateText(name, utilvalidation.DNS1123SubdomainMaxLength, path.Index(i))...)
		}
	}
	return problems
}

func (r *rules) validateSigner(signer *model.InstanceSigner, old *model.VirtualClusterInstance) field.ErrorList {
	if signer == nil {
		return nil
	}
	var problems field.ErrorList
	if signer.CertificateDuration != nil {
		if d := signer.CertificateDuration.Duration; d < time.Second || d > maxDuration {
			problems = append(problems, field.Invalid(signerPath.Child("certificateDuration"), d.String(),
				"must be from 1s to "+maxDuration.String()))
		}
	}
	before := model.InstanceSignerTypeNone
	if old != nil {
		before = signerType(old)
	}
	typePath, caPath, kubeconfigPath := signerPath.Child("type"), signerPath.Child("ca"), signerPath.Child("kubeconfig")
	if !slices.Contains(signerTypes, signer.Type) {
		return append(problems, field.NotSupported(typePath, signer.Type, signerTypes))
	}
	for _, part := range []struct {
		kind  string
		path  *field.Path
		given bool
	}{
		{model.InstanceSignerTypeCA, caPath, signer.CA != nil},
		{model.InstanceSignerTypeKubeconfig, kubeconfigPath, signer.Kubeconfig != ""},
	} {
		if part.given && signer.Type != part.kind {
			problems = append(problems, field.Forbidden(part.path, "must not be set with a signer of type "+signer.Type))
		}
		if !part.given && signer.Type == part.kind && before != part.kind {
			problems = append(problems, field.Required(part.path, "a signer of type "+part.kind+" needs it"))
		}
	}
	if signer.CA != nil {
		problems = append(problems, r.validateCA(signer)...)
	}
	return append(problems, r.validateKubeconfig(string(signer.Kubeconfig), kubeconfigPath)...)
}

func (r *rules) validateCA(signer *model.InstanceSigner) field.ErrorList {
	var problems field.ErrorList
	path := signerPath.Child("ca")
	for _, part := range []struct {
		path *field.Path
		size int
	}{{path.Child("certData"), len(signer.CA.CertData)}, {path.Child("keyData"), len(signer.CA.KeyData)}} {
		switch {
		case part.size == 0:
			problems = append(problems, field.Required(part.path, "a certificate and its key must be set together"))
		case part.size > maxMaterial:
			problems = append(problems, field.TooLong(part.path, field.OmitValueType{}, maxMaterial))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	_, wrongCertificate, wrongKey := parseCA(signer, r.now)
	if wrongCertificate != nil {
		problems = append(problems, field.Invalid(path.Child("certData"), field.OmitValueType{}, wrongCertificate.Error()))
	}
	if wrongKey != nil {
		problems = append(problems, field.Invalid(path.Child("keyData"), field.OmitValueType{}, wrongKey.Error()))
	}
	return problems
}

// parseCA reads the certificate authority of a signer.
func parseCA(signer *model.InstanceSigner, now func() time.Time) (ca *clusterca.CA, wrongCertificate, wrongKey error) {
	return clusterca.ParseCA(signer.CA.CertData, signer.CA.KeyData, Duration(signer), now)
}

// Duration returns the signing duration of a signer, which may be nil. Source: Spec 8; ADR-0003.
func Duration(signer *model.InstanceSigner) time.Duration {
	if signer == nil || signer.CertificateDuration == nil {
		return defaultDuration
	}
	return signer.CertificateDuration.Duration
}

func (r *rules) validateKubeconfig(text string, path *field.Path) field.ErrorList {
	switch {
	case text == "":
		return nil
	case len(text) > maxMaterial:
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, maxMaterial)}
	}
	access, err := clusterca.ParseAccess(text)
	if err == nil {
		err = r.checkLiteral(access.Server)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

// checkLiteral refuses an IP address in the URL that each connection would refuse. It accepts host names.
func (r *rules) checkLiteral(server string) error {
	at, err := url.Parse(server)
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(at.Hostname())
	if err != nil {
		return nil //nolint:nilerr // a name, which is resolved and checked at each connection
	}
	if err := destination.Check(address, r.AllowLocal); err != nil {
		return fmt.Errorf("server of the cluster: %w", err)
	}
	return nil
}

// ValidateStatus returns everything that is wrong with the status that a client writes.
func (r *rules) ValidateStatus(instance, _ *model.VirtualClusterInstance) field.ErrorList {
	var problems field.ErrorList
	status := &instance.Status
	if status.Phase != "" && !slices.Contains(phases, status.Phase) {
		problems = append(problems, field.NotSupported(statusPath.Child("phase"), status.Phase, phases))
	}
	if status.Ingress != nil {
		problems = append(problems, validateIngress(status.Ingress.Host, status.Ingress.CAData, statusPath.Child("ingress"))...)
	}
	return append(problems, metav1validation.ValidateConditions(status.Conditions, statusPath.Child("conditions"))...)
}
