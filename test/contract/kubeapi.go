package contract

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// patchTypes are the patch types that kube-apiserver accepts for custom resources.
var patchTypes = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}

// kubeHandler serves access keys with the handlers of kube-apiserver, put together as for custom resources. The rules of access keys are ours;
// everything else is Kubernetes code. Every request has the given caller.
func kubeHandler(keys *accesskey.Registry, state store.Store, caller identity.Caller) http.Handler {
	scheme := runtime.NewScheme()
	if err := model.AddToScheme(scheme); err != nil {
		panic(err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	kind := accesskey.Definition.GroupVersionKind()
	selectable := accesskey.Definition.Fields(&model.OwnedAccessKey{})
	err := scheme.AddFieldLabelConversionFunc(kind, func(label, value string) (string, string, error) {
		if _, known := selectable[label]; known || label == "metadata.name" {
			return label, value, nil
		}
		return "", "", fmt.Errorf("field label not supported: %s", label)
	})
	if err != nil {
		panic(err)
	}
	codecs := textCodecs{serializer.NewCodecFactory(scheme)}
	json := codecs.SupportedMediaTypes()[0].Serializer
	codec := codecs.CodecForVersions(json, json, kind.GroupVersion(), kind.GroupVersion())
	keyStore := newKubeStore(keys, scheme, NewStorage(state, codec, "/ownedaccesskeys/",
		func() runtime.Object { return &model.OwnedAccessKey{} }, nil), codec, caller)

	manager, err := managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), scheme, scheme, scheme,
		kind, kind.GroupVersion(), "", nil)
	if err != nil {
		panic(err)
	}
	scope := &handlers.RequestScope{
		Namer:                    handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: true},
		Serializer:               codecs,
		ParameterCodec:           runtime.NewParameterCodec(scheme),
		Creater:                  scheme, //nolint:misspell // its name
		Convertor:                scheme,
		Defaulter:                scheme,
		Typer:                    scheme,
		UnsafeConvertor:          scheme,
		Authorizer:               authorizerfactory.NewAlwaysAllowAuthorizer(),
		EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		TableConvertor:           keyStore,
		FieldManager:             manager,
		Resource:                 accesskey.Definition.Resource,
		Kind:                     kind,
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		HubGroupVersion:          kind.GroupVersion(),
		MaxRequestBodyBytes:      3 << 20,
	}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		if info.APIGroup != kind.Group || info.APIVersion != kind.Version || info.Resource != accesskey.Definition.Resource.Resource ||
			info.Namespace != "" || info.Subresource != "" || len(info.Parts) > 2 {
			http.NotFound(w, r)
			return
		}
		switch info.Verb {
		case "get":
			handlers.GetResource(keyStore, scope)(w, r)
		case "list", "watch":
			handlers.ListResource(keyStore, keyStore, scope, info.Verb == "watch", 30*time.Minute)(w, r)
		case "create":
			handlers.CreateResource(keyStore, scope, nil)(w, r)
		case "update":
			handlers.UpdateResource(keyStore, scope, nil)(w, r)
		case "patch":
			handlers.PatchResource(keyStore, scope, nil, patchTypes)(w, r)
		case "delete":
			handlers.DeleteResource(keyStore, true, scope, nil)(w, r)
		case "deletecollection":
			handlers.DeleteCollection(keyStore, true, scope, nil)(w, r)
		default:
			responsewriters.ErrorNegotiated(apierrors.NewMethodNotSupported(scope.Resource.GroupResource(), info.Verb),
				codecs, kind.GroupVersion(), w, r)
		}
	})
	var handler http.Handler = serve
	handler = filters.WithWarningRecorder(handler)
	handler = filters.WithRequestDeadline(handler, nil, nil, func(_ *http.Request, info *request.RequestInfo) bool { return info.Verb == "watch" }, codecs, time.Minute)
	handler = filters.WithCacheControl(handler)
	handler = filters.WithRequestInfo(handler, &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api")})
	return filters.WithAuditInit(filters.WithRequestReceivedTimestamp(handler))
}

// textCodecs offers JSON and YAML, as for custom resources.
type textCodecs struct{ serializer.CodecFactory }

func (c textCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	var infos []runtime.SerializerInfo
	for _, info := range c.CodecFactory.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON || info.MediaType == runtime.ContentTypeYAML {
			infos = append(infos, info)
		}
	}
	return infos
}

// newKubeStore is the registry of a kube-apiserver over our store.
func newKubeStore(keys *accesskey.Registry, scheme *runtime.Scheme, s storage.Interface, codec runtime.Codec, caller identity.Caller) *registry.Store {
	resource := accesskey.Definition.GroupResource()
	strategy := keyStrategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, keys: keys, caller: caller}
	const root = "/ownedaccesskeys"
	return &registry.Store{
		NewFunc:                   func() runtime.Object { return &model.OwnedAccessKey{} },
		NewListFunc:               func() runtime.Object { return &model.OwnedAccessKeyList{} },
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: schema.GroupResource{Group: resource.Group, Resource: accesskey.Definition.Singular},
		KeyRootFunc:               func(context.Context) string { return root },
		KeyFunc: func(ctx context.Context, name string) (string, error) {
			return registry.NoNamespaceKeyFunc(ctx, root, name)
		},
		ObjectNameFunc: func(obj runtime.Object) (string, error) {
			return obj.(*model.OwnedAccessKey).Name, nil
		},
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: func(obj runtime.Object) (labels.Set, fields.Set, error) {
				key := obj.(*model.OwnedAccessKey)
				set := accesskey.Definition.Fields(key)
				set["metadata.name"] = key.Name
				return key.Labels, set, nil
			}}
		},
		EnableGarbageCollection: true,
		CreateStrategy:          strategy,
		UpdateStrategy:          strategy,
		DeleteStrategy:          strategy,
		TableConvertor:          keyTable{},
		Storage:                 registry.DryRunnableStorage{Storage: s, Codec: codec},
	}
}

// keyStrategy brings the rules of access keys into a kube-apiserver's registry.
type keyStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	keys   *accesskey.Registry
	caller identity.Caller
}

var (
	_ rest.RESTCreateStrategy = keyStrategy{}
	_ rest.RESTUpdateStrategy = keyStrategy{}
	_ rest.RESTDeleteStrategy = keyStrategy{}
)

func (keyStrategy) NamespaceScoped() bool                         { return false }
func (keyStrategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (keyStrategy) AllowUnconditionalUpdate(context.Context) bool { return true }
func (keyStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
func (s keyStrategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return s.keys.Rules.Warn(obj.(*model.OwnedAccessKey))
}

func (s keyStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	key := obj.(*model.OwnedAccessKey)
	key.Generation = 1
	key.Status = model.OwnedAccessKeyStatus{}
	s.keys.Rules.Default(s.caller, key, nil)
}

func (s keyStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	key, oldKey := obj.(*model.OwnedAccessKey), old.(*model.OwnedAccessKey)
	key.Status = oldKey.Status
	s.keys.Rules.Default(s.caller, key, oldKey)
	key.Generation = oldKey.Generation
	unsealed := key.Spec.DeepCopy()
	unsealed.Key = ""
	if !reflect.DeepEqual(*unsealed, oldKey.Spec) {
		key.Generation++
	}
}

func (s keyStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	key := obj.(*model.OwnedAccessKey).DeepCopy()
	problems := validation.ValidateObjectMetaAccessor(key, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	problems = append(problems, s.keys.Rules.Validate(key, nil)...)
	_, more := s.keys.Rules.Seal(key, store.Record{})
	return append(problems, more...)
}

func (s keyStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	key := obj.(*model.OwnedAccessKey).DeepCopy()
	problems := validation.ValidateObjectMetaAccessorUpdate(key, old.(*model.OwnedAccessKey), field.NewPath("metadata"))
	return append(problems, s.keys.Rules.Validate(key, old.(*model.OwnedAccessKey))...)
}

// Canonicalize removes the secret from the object before it is stored.
func (keyStrategy) Canonicalize(obj runtime.Object) { obj.(*model.OwnedAccessKey).Spec.Key = "" }

// keyTable makes the same rows as our table, without the times.
type keyTable struct{}

func (keyTable) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = accesskey.Definition.Columns
	}
	row := func(obj runtime.Object) error {
		key, ok := obj.(*model.OwnedAccessKey)
		if !ok {
			return fmt.Errorf("%T is no access key", obj)
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells: accesskey.Definition.Cells(key, time.Now()), Object: runtime.RawExtension{Object: obj}})
		return nil
	}
	if meta.IsListType(object) {
		list, err := meta.ListAccessor(object)
		if err != nil {
			return nil, err
		}
		table.ResourceVersion, table.Continue = list.GetResourceVersion(), list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
		return table, meta.EachListItem(object, row)
	}
	if accessor, err := meta.CommonAccessor(object); err == nil {
		table.ResourceVersion = accessor.GetResourceVersion()
	}
	return table, row(object)
}
