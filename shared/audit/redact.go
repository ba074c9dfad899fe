package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// MaxPayloadBytes is the largest object that is recorded. Source: ADR-0016.
const MaxPayloadBytes = 2 << 20

// The reasons why an object is not recorded.
const (
	decodeFailed = "decode-failed"
	tooLarge     = "too-large"
	unknownType  = "unknown-type"
)

// origins are the packages whose objects are recorded. Tags of their types mark the secrets; the contents of other
// types are not known.
var origins = map[string]bool{
	reflect.TypeFor[model.Scope]().PkgPath():   true,
	reflect.TypeFor[metav1.Status]().PkgPath(): true,
	"k8s.io/api/authentication/v1":             true,
	"k8s.io/api/authorization/v1":              true,
}

// foreign are the secrets in Kubernetes types, which have no tag.
var foreign = map[string]bool{
	"k8s.io/api/authentication/v1.TokenReviewSpec.token":    true,
	"k8s.io/api/authentication/v1.TokenRequestStatus.token": true,
}

// hasKnownSecrets reports whether the secrets of a type are known.
func hasKnownSecrets(goType reflect.Type) bool {
	for goType != nil && goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	return goType != nil && goType.Kind() == reflect.Struct && origins[goType.PkgPath()]
}

// Object returns an object of a response without its secrets, as JSON. The object itself is not changed. Why says why the
// object cannot be recorded, as in the annotation ResponseOmitted.
func Object(object any) (text json.RawMessage, why string) {
	typed, ok := object.(runtime.Object)
	if !ok || !hasKnownSecrets(reflect.TypeOf(object)) {
		return nil, unknownType
	}
	if of := shapeOf(reflect.TypeOf(object)); of.secrets {
		typed = typed.DeepCopyObject()
		of.clear(reflect.ValueOf(typed))
	}
	text, err := json.Marshal(typed)
	return limitSize(text, err)
}

func limitSize(text []byte, err error) (json.RawMessage, string) {
	switch {
	case err != nil:
		return nil, decodeFailed
	case len(text) > MaxPayloadBytes:
		return nil, tooLarge
	default:
		return text, ""
	}
}

// Form is the form of a request body.
type Form int

// The forms of bodies.
const (
	// Whole is an object, or a part of one, as in a merge or apply patch.
	Whole Form = iota
	// Operations is a JSON patch.
	Operations
)

// Body returns the body of a request for an object of a type, as JSON and without the secrets of the type. Hidden are
// the secrets that were found, because they may also occur elsewhere. A body that does not fit the type is not
// recorded, because the position of its secrets is not known. Why has the values of the annotation RequestOmitted.
func Body(goType reflect.Type, form Form, body []byte) (text json.RawMessage, hidden []secret.String, why string) {
	if !hasKnownSecrets(goType) {
		return nil, nil, unknownType
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, nil, decodeFailed
	}
	w := &walker{}
	if form == Operations {
		value = w.operations(shapeOf(goType), value)
	} else {
		value = w.value(shapeOf(goType), value)
	}
	if w.misfit || value == nil {
		return nil, w.hidden, decodeFailed
	}
	text, err := json.Marshal(value)
	text, why = limitSize(text, err)
	return text, w.hidden, why
}

// MayHide reports whether Body may find a secret in a JSON text that an operation has accepted for an object of a type.
// It only searches for the names of the secret fields, which takes a hundredth of the time.
func MayHide(goType reflect.Type, text []byte) bool {
	if !hasKnownSecrets(goType) {
		return false
	}
	// An escape is another spelling of a name.
	return bytes.IndexByte(text, '\\') >= 0 ||
		slices.ContainsFunc(tracesOf(goType), func(trace []byte) bool { return bytes.Contains(text, trace) })
}

// traces are the texts that occur in every JSON text with a secret of a type: the names of members, and segments of the
// paths of JSON patches.
var traces sync.Map // reflect.Type to [][]byte

func tracesOf(goType reflect.Type) [][]byte {
	if texts, ok := traces.Load(goType); ok {
		return texts.([][]byte)
	}
	texts := [][]byte{[]byte(strings.NewReplacer("~", "~0", "/", "~1").Replace(model.LastAppliedAnnotation))}
	seen := map[*shape]bool{}
	var look func(s *shape)
	look = func(s *shape) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		look(s.element)
		for name, m := range s.fields {
			inner := m.shape
			for inner.element != nil {
				inner = inner.element
			}
			if m.secret || m.dropped || inner.opaque {
				texts = append(texts, []byte("/"+name))
			}
			if m.secret || !m.dropped && inner.opaque {
				texts = append(texts, []byte(`"`+name+`"`))
			}
			look(m.shape)
		}
	}
	look(shapeOf(goType))
	traces.Store(goType, texts)
	return texts
}

// shape is what redaction knows about a type.
type shape struct {
	goType reflect.Type
	// opaque values may contain anything, and are secret as a whole.
	opaque bool
	// secrets is true if a value may be or contain a secret.
	secrets bool
	// fields of a struct by their JSON names.
	fields map[string]*member
	// element of a pointer, list or map.
	element *shape
}

type member struct {
	*shape
	index []int
	// secret is true for a text that is secret.
	secret bool
	// dropped values are left out entirely.
	dropped bool
}

var (
	shapesMu sync.Mutex
	shapes   = map[reflect.Type]*shape{}
	// unmarshaler is implemented by types whose JSON is a single value, whatever their Go type.
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

func shapeOf(goType reflect.Type) *shape {
	shapesMu.Lock()
	defer shapesMu.Unlock()
	return learn(goType)
}

// learn creates the shape of a type. A recursive type refers to its own shape.
func learn(goType reflect.Type) *shape {
	if s, ok := shapes[goType]; ok {
		return s
	}
	s := &shape{goType: goType}
	shapes[goType] = s
	switch goType {
	case reflect.TypeFor[secret.String](), reflect.TypeFor[model.JSON](), reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		s.opaque, s.secrets = true, true
		return s
	}
	switch goType.Kind() {
	case reflect.Interface:
		s.opaque, s.secrets = true, true
	case reflect.Pointer, reflect.Slice, reflect.Map:
		s.element = learn(goType.Elem())
		s.secrets = s.element.secrets
	case reflect.Struct:
		if reflect.PointerTo(goType).Implements(unmarshaler) {
			return s
		}
		s.fields = map[string]*member{}
		// A type that contains itself counts as one with secrets until its shape is complete.
		s.secrets = true
		s.learnFields(goType, nil)
		s.secrets = false
		for _, m := range s.fields {
			s.secrets = s.secrets || m.secret || m.dropped || m.secrets
		}
	default:
	}
	return s
}

func (s *shape) learnFields(goType reflect.Type, at []int) {
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		index := append(append([]int(nil), at...), i)
		if field.Anonymous && name == "" || strings.Contains(options, "inline") {
			s.learnFields(field.Type, index)
			continue
		}
		if !field.IsExported() || name == "-" || name == "" {
			continue
		}
		m := &member{shape: learn(field.Type), index: index}
		m.secret = field.Tag.Get("secret") == "true" || field.Type == reflect.TypeFor[secret.String]() ||
			foreign[goType.PkgPath()+"."+goType.Name()+"."+name]
		// Field ownership is of no use to an auditor, and is longer than the object.
		m.dropped = goType == reflect.TypeFor[metav1.ObjectMeta]() && name == "managedFields"
		s.fields[name] = m
	}
}

// clear removes the secrets from a value in place.
func (s *shape) clear(value reflect.Value) {
	if !s.secrets || !value.IsValid() {
		return
	}
	if s.opaque {
		value.SetZero()
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return
		}
		if s.element.opaque {
			value.SetZero()
			return
		}
		s.element.clear(value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			s.element.clear(value.Index(i))
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			one := reflect.New(value.Type().Elem()).Elem()
			one.Set(value.MapIndex(key))
			s.element.clear(one)
			value.SetMapIndex(key, one)
		}
	case reflect.Struct:
		for _, m := range s.fields {
			field := value.FieldByIndex(m.index)
			switch {
			case m.dropped:
				field.SetZero()
			case m.secret && field.Kind() == reflect.String:
				if field.Len() > 0 {
					field.SetString(secret.Mark)
				}
			case m.secret:
				field.SetZero()
			default:
				m.clear(field)
			}
		}
		if annotations := annotationsOf(value); annotations != nil {
			if _, applied := annotations[model.LastAppliedAnnotation]; applied {
				annotations[model.LastAppliedAnnotation] = secret.Mark
			}
		}
	default:
	}
}

func annotationsOf(value reflect.Value) map[string]string {
	if value.Type() != reflect.TypeFor[metav1.ObjectMeta]() {
		return nil
	}
	return value.Addr().Interface().(*metav1.ObjectMeta).Annotations
}

// walker removes the secrets from JSON that is meant for a type.
type walker struct {
	hidden []secret.String
	misfit bool
}

// hide records every text below a value as a secret.
func (w *walker) hide(value any) any {
	switch value := value.(type) {
	case nil:
		return nil
	case string:
		if value == "" {
			return ""
		}
		w.hidden = append(w.hidden, secret.String(value))
	case []any:
		for _, each := range value {
			w.hide(each)
		}
	case map[string]any:
		for _, each := range value {
			w.hide(each)
		}
	}
	return secret.Mark
}

// value returns the part of a value that may be recorded, and notes if the value does not fit the type.
func (w *walker) value(s *shape, value any) any {
	for s.goType.Kind() == reflect.Pointer {
		s = s.element
	}
	switch {
	case value == nil:
		return nil
	case s.opaque:
		return w.hide(value)
	}
	switch {
	case s.fields != nil:
		object, ok := value.(map[string]any)
		if !ok {
			break
		}
		return w.object(s, object)
	case s.goType.Kind() == reflect.Map:
		object, ok := value.(map[string]any)
		if !ok {
			break
		}
		redacted := make(map[string]any, len(object))
		for key, each := range object {
			redacted[key] = w.value(s.element, each)
		}
		return redacted
	case s.goType.Kind() == reflect.Slice && s.goType.Elem().Kind() != reflect.Uint8:
		list, ok := value.([]any)
		if !ok {
			break
		}
		redacted := make([]any, len(list))
		for i, each := range list {
			redacted[i] = w.value(s.element, each)
		}
		return redacted
	default:
		if fits(s.goType, value) {
			return value
		}
	}
	// A value of the wrong type may be a secret in the wrong place.
	w.misfit = true
	w.hide(value)
	return nil
}

func (w *walker) object(s *shape, object map[string]any) any {
	redacted := make(map[string]any, len(object))
	for name, each := range object {
		m, ok := s.fields[name]
		switch {
		case !ok || m.dropped:
			// Unknown fields are pruned, as the operation prunes them.
		case m.secret:
			redacted[name] = w.hide(each)
		default:
			redacted[name] = w.value(m.shape, each)
		}
	}
	if s.goType == reflect.TypeFor[metav1.ObjectMeta]() {
		if annotations, ok := redacted["annotations"].(map[string]any); ok && annotations[model.LastAppliedAnnotation] != nil {
			annotations[model.LastAppliedAnnotation] = secret.Mark
		}
	}
	return redacted
}

// fits reports whether a JSON value is one of a type.
func fits(goType reflect.Type, value any) bool {
	switch value.(type) {
	case string, json.Number, bool:
	default:
		return false
	}
	if goType.Kind() == reflect.String && !reflect.PointerTo(goType).Implements(unmarshaler) {
		_, ok := value.(string)
		return ok
	}
	text, err := json.Marshal(value)
	return err == nil && json.Unmarshal(text, reflect.New(goType).Interface()) == nil
}

// operations walks a JSON patch: a value is redacted by the type of the field at its path.
func (w *walker) operations(root *shape, value any) any {
	list, ok := value.([]any)
	if !ok {
		w.misfit = true
		return nil
	}
	redacted := make([]any, 0, len(list))
	for _, each := range list {
		operation, ok := each.(map[string]any)
		if !ok {
			w.misfit = true
			continue
		}
		entry := map[string]any{}
		for _, name := range []string{"op", "path", "from"} {
			if text, value := operation[name]; value {
				word, ok := text.(string)
				if w.misfit = w.misfit || !ok; ok {
					entry[name] = word
				}
			}
		}
		if value, has := operation["value"]; has {
			path, _ := entry["path"].(string)
			target, hidden, ok := root.resolvePointer(path)
			switch {
			case !ok:
				w.misfit = true
				w.hide(value)
			case hidden:
				entry["value"] = w.hide(value)
			default:
				entry["value"] = w.value(target, value)
			}
		}
		redacted = append(redacted, entry)
	}
	return redacted
}

// resolvePointer follows a JSON pointer through a type.
func (s *shape) resolvePointer(pointer string) (resolvePointer *shape, hidden, ok bool) {
	if pointer == "" {
		return s, false, true
	}
	steps := strings.Split(pointer, "/")
	if steps[0] != "" {
		return nil, false, false
	}
	for _, step := range steps[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		for s.goType.Kind() == reflect.Pointer {
			s = s.element
		}
		switch {
		case s.opaque:
			return s, true, true
		case s.fields != nil:
			m, known := s.fields[step]
			if !known {
				return nil, false, false
			}
			if m.secret || m.dropped {
				return m.shape, true, true
			}
			s = m.shape
		case s.goType.Kind() == reflect.Map:
			if step == model.LastAppliedAnnotation {
				return s.element, true, true
			}
			s = s.element
		case s.goType.Kind() == reflect.Slice:
			if _, err := strconv.ParseUint(step, 10, 32); err != nil && step != "-" {
				return nil, false, false
			}
			s = s.element
		default:
			return nil, false, false
		}
	}
	return s, false, true
}
