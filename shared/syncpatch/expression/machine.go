package expression

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"
)

// Globals are the values that expressions can use in addition to the variable value. Source: Spec 2.8 rules 3 and 5.
type Globals struct {
	// Context are the members of the variable context, except path. They are JSON values, which expressions cannot
	// change.
	Context map[string]any
	// HostDNS is the function virtualToHostDNS.
	HostDNS func(service string) (string, error)
}

// Machine runs the expressions of one evaluation. It is not safe for concurrent use, and must not be used after an
// error.
type Machine struct {
	limits  Limits
	globals *Globals
	spent   time.Duration
	watch   stopwatch
	shared  *realm
	own     map[*Expression]*realm
}

// NewMachine returns a machine for one evaluation. Source: ADR-0014.
func NewMachine(limits Limits, globals *Globals) *Machine {
	return &Machine{limits: limits, globals: globals, own: map[*Expression]*realm{}}
}

// Run runs an expression on the value at a concrete path; exists is false if there is no value. deleted reports whether
// the result is null or undefined. Its errors are *Error.
func (m *Machine) Run(e *Expression, value any, exists bool, path string) (any, bool, error) {
	allowed, name := m.limits.Time, LimitTime
	if left := m.limits.Total - m.spent; left < allowed {
		allowed, name = left, LimitTotal
	}
	if allowed <= 0 {
		return nil, false, m.limits.Exceeded(LimitTotal)
	}
	r := m.realmFor(e)
	began := time.Now()
	m.watch.start(r.runtime, allowed)
	out, deleted, err := r.evaluate(e, value, exists, path)
	if m.watch.stop() {
		err = m.limits.Exceeded(name)
	}
	m.spent += time.Since(began)
	if err != nil {
		return nil, false, err
	}
	return out, deleted, nil
}

// realmFor returns a realm without changes. An expression that is not proven to leave the built-in objects unchanged
// gets a new realm for each run. An expression that computes the names of members gets a realm of its own, from which
// members are removed. All other expressions share one realm.
func (m *Machine) realmFor(e *Expression) *realm {
	switch {
	case e.unproven:
		return newRealm(m.limits, m.globals)
	case e.computes:
		if m.own[e] == nil {
			m.own[e] = newRealm(m.limits, m.globals)
		}
		return m.own[e]
	default:
		if m.shared == nil {
			m.shared = newRealm(m.limits, m.globals)
		}
		return m.shared
	}
}

// realm is one set of the built-in objects of JavaScript, with the functions made of expressions in it.
type realm struct {
	limits    Limits
	globals   *Globals
	runtime   *goja.Runtime
	plain     *goja.Object
	functions map[*Expression]goja.Callable
	context   *goja.Object
	variables *frozenObject
	helpers   [3]goja.Value
	guarded   map[string]bool
	trimmed   bool
}

func (r *realm) evaluate(e *Expression, value any, exists bool, path string) (out any, deleted bool, err error) {
	defer func() {
		// A panic of the interpreter is an error of the expression.
		if what := recover(); what != nil {
			out, deleted, err = nil, false, fault(what)
		}
	}()
	call, err := r.function(e)
	if err != nil {
		return nil, false, r.failure(e, err)
	}
	input := goja.Undefined()
	if exists {
		input = r.toJS(value)
	}
	if e.readsContext {
		r.variables.values["path"] = r.runtime.ToValue(path)
	}
	returned, err := call(goja.Undefined(), input, r.runtime.ToValue(exists), r.context, r.helpers[0], r.helpers[1], r.helpers[2])
	if err != nil {
		return nil, false, r.failure(e, err)
	}
	if goja.IsUndefined(returned) || goja.IsNull(returned) {
		return nil, true, nil
	}
	converted := result{limits: r.limits, plain: r.plain}
	if thrown := r.runtime.Try(func() { out, err = converted.value(returned) }); thrown != nil {
		err = thrown
	}
	if err != nil {
		return nil, false, r.failure(e, err)
	}
	return out, false, nil
}

// function returns the function made of an expression in this realm.
func (r *realm) function(e *Expression) (goja.Callable, error) {
	if call, ok := r.functions[e]; ok {
		return call, nil
	}
	r.prepare(e)
	made, err := r.runtime.RunProgram(e.program)
	if err != nil {
		return nil, err
	}
	call, ok := goja.AssertFunction(made)
	if !ok {
		return nil, errors.New("the program of an expression is a function")
	}
	r.functions[e] = call
	return call, nil
}

// failure returns an error of the interpreter as an *Error.
func (r *realm) failure(e *Expression, err error) error {
	var ownError *Error
	var overflow *goja.StackOverflowError
	var thrown *goja.Exception
	var unsuitable *resultError
	switch {
	case errors.As(err, &ownError):
		if ownError.Line > 0 || !errors.As(err, &thrown) {
			return ownError
		}
	case errors.As(err, &overflow):
		return r.limits.Exceeded(LimitDepth)
	case errors.As(err, &unsuitable):
		return &Error{Message: unsuitable.Error()}
	case !errors.As(err, &thrown):
		return fault(err)
	}
	failed := &Error{}
	if ownError != nil {
		failed.Message = ownError.Message
	} else {
		failed.Message = r.describeThrown(thrown.Value())
	}
	for _, frame := range thrown.Stack() {
		if frame.SrcName() != "<native>" {
			at := position(e.text, frame.Position())
			failed.Line, failed.Column = at.Line, at.Column
			break
		}
	}
	return failed
}

// clip cuts a text to a length that fits into a message.
func clip(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

func newRealm(limits Limits, globals *Globals) *realm {
	r := &realm{
		limits: limits, globals: globals, runtime: goja.New(), functions: map[*Expression]goja.Callable{}, guarded: map[string]bool{},
	}
	r.runtime.SetMaxCallStackSize(limits.Depth)
	r.plain = r.runtime.NewObject().Prototype()
	r.variables = &frozenObject{r: r, values: r.members()}
	r.context = r.runtime.NewDynamicObject(r.variables)
	r.helpers = [3]goja.Value{
		r.ofText("atob", decodeBase64), r.ofText("btoa", encodeBase64), r.ofText("virtualToHostDNS", globals.HostDNS),
	}
	return r
}

// ofText makes a function of one string for expressions. As in browsers, its argument is required.
func (r *realm) ofText(name string, f func(string) (string, error)) goja.Value {
	return r.runtime.ToValue(func(call goja.FunctionCall) goja.Value {
		if len(call.Arguments) == 0 {
			panic(r.runtime.NewTypeError(name + " needs an argument"))
		}
		return r.text(f(call.Arguments[0].String()))
	})
}

// prepare makes the realm safe for an expression. The checker has checked all member names in the text; the realm
// guards the members whose names the expression computes.
func (r *realm) prepare(e *Expression) {
	guards := e.guards
	if e.computes {
		r.trim()
		guards = allGuards
	}
	for _, name := range guards {
		switch {
		case r.guarded[name]:
			continue
		case name == compileMethod:
			r.must(r.prototype("RegExp").Delete(name))
		default:
			r.guard(name, guarded[name])
		}
		r.guarded[name] = true
	}
}

// trim removes the members that lead from data to code or to shared objects, and the members that call any function on
// any object.
func (r *realm) trim() {
	if r.trimmed {
		return
	}
	r.trimmed = true
	for _, name := range []string{"Function", "Object", "Array", "String", "Number", "Boolean", "RegExp", "Error", "Map", "Set"} {
		prototype := r.prototype(name)
		for _, member := range append([]string{"constructor"}, removed[name]...) {
			r.must(prototype.Delete(member))
		}
	}
}

var removed = map[string][]string{
	"Function": {"apply", "bind", "call"},
	"Object":   {"__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"},
}

func (r *realm) prototype(name string) *goja.Object {
	constructor, ok := r.runtime.Get(name).(*goja.Object)
	if ok {
		if prototype, ok := constructor.Get("prototype").(*goja.Object); ok {
			return prototype
		}
	}
	panic("expression: JavaScript has no " + name)
}

func (r *realm) must(err error) {
	if err != nil {
		panic(fmt.Errorf("expression: preparing the objects of JavaScript: %w", err))
	}
}

// guarded are the methods of strings whose arguments are checked at run time: patterns that an expression computes
// follow the same rules as patterns in the text, and strings do not grow beyond the size of a result.
var guarded = map[string]func(r *realm, this goja.Value, arguments []goja.Value){
	"match":    (*realm).checkPattern,
	"matchAll": (*realm).checkPattern,
	"search":   (*realm).checkPattern,
	"padEnd":   (*realm).checkLength,
	"padStart": (*realm).checkLength,
	"repeat":   (*realm).checkRepeat,
}

// compileMethod is the method of regular expressions that replaces the pattern.
const compileMethod = "compile"

var allGuards = append(slices.Sorted(maps.Keys(guarded)), compileMethod)

func (r *realm) guard(name string, check func(r *realm, this goja.Value, arguments []goja.Value)) {
	prototype := r.prototype("String")
	original, ok := goja.AssertFunction(prototype.Get(name))
	if !ok {
		panic("expression: JavaScript has no method " + name)
	}
	checked := r.runtime.ToValue(func(call goja.FunctionCall) goja.Value {
		check(r, call.This, call.Arguments)
		out, err := original(call.This, call.Arguments...)
		if err != nil {
			panic(err)
		}
		return out
	})
	r.must(prototype.DefineDataProperty(name, checked, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
}

func (r *realm) checkPattern(_ goja.Value, arguments []goja.Value) {
	if len(arguments) == 0 || goja.IsUndefined(arguments[0]) {
		return
	}
	if o, ok := arguments[0].(*goja.Object); ok && o.ClassName() == "RegExp" {
		return
	}
	// matchAll adds the flag g.
	pattern, _, _, err := checkPattern(arguments[0].String(), "g")
	if err != nil {
		r.throw(err)
	}
	arguments[0] = r.runtime.ToValue(pattern)
}

func (r *realm) checkLength(_ goja.Value, arguments []goja.Value) {
	if len(arguments) > 0 && arguments[0].ToFloat() > float64(r.limits.Result) {
		r.throw(r.limits.Exceeded(LimitResult))
	}
}

func (r *realm) checkRepeat(this goja.Value, arguments []goja.Value) {
	if len(arguments) > 0 && arguments[0].ToFloat()*float64(len(this.String())) > float64(r.limits.Result) {
		r.throw(r.limits.Exceeded(LimitResult))
	}
}

func (r *realm) text(text string, err error) goja.Value {
	if err != nil {
		r.throw(err)
	}
	return r.runtime.ToValue(text)
}

// throw ends the expression with an error at the position of the call.
func (r *realm) throw(err error) {
	panic(r.runtime.NewGoError(&Error{Message: clip(err.Error())}))
}

// encodeBase64 is the function btoa of browsers: each character is a byte. Source: Spec 2.8 rule 3.
func encodeBase64(text string) (string, error) {
	data := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return "", fmt.Errorf("btoa: the text contains %q, which is beyond U+00FF", r)
		}
		data = append(data, byte(r))
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// decodeBase64 is the function atob of browsers: white space is skipped, padding may be missing, each byte is a
// character. Source: Spec 2.8 rule 3.
func decodeBase64(text string) (string, error) {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("\t\n\f\r ", r) {
			return -1
		}
		return r
	}, text)
	if len(text)%4 == 0 {
		text = strings.TrimSuffix(text, "=")
		if len(text)%4 == 3 {
			text = strings.TrimSuffix(text, "=")
		}
	}
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return "", errors.New("atob: the text is not base64")
	}
	out := make([]rune, len(data))
	for i, b := range data {
		out[i] = rune(b)
	}
	return string(out), nil
}

// stopwatch interrupts a runtime when its time is over. An interrupt that comes after stop has no effect.
type stopwatch struct {
	mu      sync.Mutex
	timer   *time.Timer
	runtime *goja.Runtime
	fired   bool
}

func (s *stopwatch) start(runtime *goja.Runtime, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtime, s.fired = runtime, false
	if s.timer == nil {
		s.timer = time.AfterFunc(after, s.fire)
	} else {
		s.timer.Reset(after)
	}
}

func (s *stopwatch) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runtime != nil {
		s.fired = true
		s.runtime.Interrupt(nil)
	}
}

// stop ends the stopwatch and reports whether the time was exceeded.
func (s *stopwatch) stop() bool {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtime = nil
	return s.fired
}

// members returns the members of context: path, and read-only views of the given values.
func (r *realm) members() map[string]goja.Value {
	members := map[string]goja.Value{"path": goja.Undefined()}
	for name, value := range r.globals.Context {
		members[name] = r.view(value)
	}
	return members
}

// view returns a read-only view of a JSON value, without a copy.
func (r *realm) view(value any) goja.Value {
	switch v := value.(type) {
	case nil:
		return goja.Null()
	case map[string]any:
		return r.runtime.NewDynamicObject(&frozenObject{r: r, source: v, values: map[string]goja.Value{}})
	case []any:
		return r.runtime.NewDynamicArray(&frozenArray{r: r, source: v, values: map[int]goja.Value{}})
	default:
		return r.runtime.ToValue(v)
	}
}

// frozenObject is a view of a JSON object that refuses every change. Each member is made once, when it is first read,
// so that every read of it gives the same object.
type frozenObject struct {
	r      *realm
	source map[string]any
	values map[string]goja.Value
}

func (f *frozenObject) Get(key string) goja.Value {
	if made, ok := f.values[key]; ok {
		return made
	}
	item, ok := f.source[key]
	if !ok {
		return nil
	}
	f.values[key] = f.r.view(item)
	return f.values[key]
}

func (f *frozenObject) Has(key string) bool {
	_, made := f.values[key]
	_, there := f.source[key]
	return made || there
}

func (f *frozenObject) Keys() []string {
	if f.source == nil {
		return slices.Sorted(maps.Keys(f.values))
	}
	return slices.Sorted(maps.Keys(f.source))
}

func (f *frozenObject) Set(string, goja.Value) bool { panic(f.r.refuseChange()) }
func (f *frozenObject) Delete(string) bool          { panic(f.r.refuseChange()) }

// frozenArray is a view of an array that refuses every change.
type frozenArray struct {
	r      *realm
	source []any
	values map[int]goja.Value
}

func (f *frozenArray) Len() int { return len(f.source) }

func (f *frozenArray) Get(i int) goja.Value {
	if i < 0 || i >= len(f.source) {
		return nil
	}
	if _, ok := f.values[i]; !ok {
		f.values[i] = f.r.view(f.source[i])
	}
	return f.values[i]
}

func (f *frozenArray) Set(int, goja.Value) bool { panic(f.r.refuseChange()) }
func (f *frozenArray) SetLen(int) bool          { panic(f.r.refuseChange()) }

func (r *realm) refuseChange() *goja.Object {
	return r.runtime.NewTypeError("context cannot be changed")
}
