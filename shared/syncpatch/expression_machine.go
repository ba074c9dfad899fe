package syncpatch

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

// machine runs the expressions of one evaluation. It is for one goroutine, and of no use after an error.
type machine struct {
	limits Limits
	about  *Context
	spent  time.Duration
	watch  stopwatch

	// What follows belongs to one realm, which lasts until an expression that writes has run in it.
	runtime   *goja.Runtime
	functions map[*expression]goja.Callable
	context   *goja.Object
	variable  *frozenObject
	globals   [3]goja.Value
	guarded   map[string]bool
	trimmed   bool
}

// newMachine makes the machine for one evaluation. Source: ADR-0014.
func newMachine(limits Limits, about *Context) (*machine, error) {
	return &machine{limits: limits.withDefaults(), about: about}, nil
}

// run evaluates an expression for the value at a concrete path. A result of null or undefined is deleted. Its errors
// are *EvaluationError.
func (m *machine) run(e *expression, value any, exists bool, path string) (any, bool, error) {
	if e.writes {
		m.runtime = nil
		defer func() { m.runtime = nil }()
	}
	if m.runtime == nil {
		m.realm()
	}
	allowed, name := m.limits.Expression, LimitExpression
	if left := m.limits.Object - m.spent; left < allowed {
		allowed, name = left, LimitObject
	}
	if allowed <= 0 {
		return nil, false, m.limits.Exceeded(LimitObject)
	}
	began := time.Now()
	m.watch.start(m.runtime, allowed)
	out, deleted, err := m.evaluate(e, value, exists, path)
	if m.watch.stop() {
		err = m.limits.Exceeded(name)
	}
	m.spent += time.Since(began)
	if err != nil {
		return nil, false, err
	}
	return out, deleted, nil
}

func (m *machine) evaluate(e *expression, value any, exists bool, path string) (out any, deleted bool, err error) {
	defer func() {
		// A fault of the interpreter is the expression's, not that of who evaluates it.
		if fault := recover(); fault != nil {
			out, deleted, err = nil, false, &EvaluationError{Message: clip(fmt.Sprintf("the interpreter failed: %v", fault))}
		}
	}()
	call, err := m.function(e)
	if err != nil {
		return nil, false, m.failure(err)
	}
	input := goja.Undefined()
	if exists {
		input = m.toJS(value)
	}
	if e.readsContext {
		m.variable.values["path"] = m.runtime.ToValue(path)
	}
	returned, err := call(goja.Undefined(), input, m.runtime.ToValue(exists), m.context, m.globals[0], m.globals[1], m.globals[2])
	if err != nil {
		return nil, false, m.failure(err)
	}
	if goja.IsUndefined(returned) || goja.IsNull(returned) {
		return nil, true, nil
	}
	r := result{limits: m.limits}
	if thrown := m.runtime.Try(func() { out, err = r.value(returned) }); thrown != nil {
		err = thrown
	}
	if err != nil {
		return nil, false, m.failure(err)
	}
	return out, false, nil
}

// function is the expression in this realm.
func (m *machine) function(e *expression) (goja.Callable, error) {
	if call, ok := m.functions[e]; ok {
		return call, nil
	}
	m.prepare(e)
	made, err := m.runtime.RunProgram(e.program)
	if err != nil {
		return nil, err
	}
	call, ok := goja.AssertFunction(made)
	if !ok {
		return nil, errors.New("the program of an expression is a function")
	}
	m.functions[e] = call
	return call, nil
}

// failure tells what the interpreter reports in the terms of an evaluation.
func (m *machine) failure(err error) error {
	var known *EvaluationError
	var overflow *goja.StackOverflowError
	var thrown *goja.Exception
	switch {
	case errors.As(err, &known):
		if known.Line > 0 || !errors.As(err, &thrown) {
			return known
		}
	case errors.As(err, &overflow):
		return m.limits.Exceeded(LimitDepth)
	case !errors.As(err, &thrown):
		return &EvaluationError{Message: err.Error()}
	}
	failed := &EvaluationError{Message: "the expression threw " + clip(thrown.Value().String())}
	if known != nil {
		failed.Message = known.Message
	} else if o, ok := thrown.Value().(*goja.Object); ok && o.ClassName() == "Error" {
		failed.Message = clip(o.String())
	}
	for _, frame := range thrown.Stack() {
		if frame.SrcName() != "<native>" {
			at := position(frame.Position())
			failed.Line, failed.Column = at.Line, at.Column
			break
		}
	}
	return failed
}

// clip bounds what of a value goes into a message.
func clip(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// realm makes new objects of JavaScript.
func (m *machine) realm() {
	m.runtime = goja.New()
	m.runtime.SetMaxCallStackSize(m.limits.Depth)
	m.functions = map[*expression]goja.Callable{}
	m.guarded = map[string]bool{}
	m.trimmed = false
	m.variable = &frozenObject{m: m, values: m.variables()}
	m.context = m.runtime.NewDynamicObject(m.variable)
	m.globals = [3]goja.Value{
		m.runtime.ToValue(func(call goja.FunctionCall) goja.Value { return m.text(decodeBase64(call.Argument(0).String())) }),
		m.runtime.ToValue(func(call goja.FunctionCall) goja.Value { return m.text(encodeBase64(call.Argument(0).String())) }),
		m.runtime.ToValue(func(call goja.FunctionCall) goja.Value { return m.text(m.about.hostDNS(call.Argument(0).String())) }),
	}
}

// prepare makes the realm fit for an expression. The checker has seen all members that are written out; the realm has
// to see to those whose names the expression computes.
func (m *machine) prepare(e *expression) {
	guards := e.guards
	if e.computes {
		m.trim()
		guards = allGuards
	}
	for _, name := range guards {
		if !m.guarded[name] {
			m.guarded[name] = true
			m.guard(name, guarded[name])
		}
	}
}

// trim takes away what leads from data to code or to what objects share, and what makes any function work on anything.
func (m *machine) trim() {
	if m.trimmed {
		return
	}
	m.trimmed = true
	for _, name := range []string{"Function", "Object", "Array", "String", "Number", "Boolean", "RegExp", "Map", "Set"} {
		prototype := m.prototype(name)
		for _, member := range append([]string{"constructor"}, removed[name]...) {
			m.must(prototype.Delete(member))
		}
	}
}

var removed = map[string][]string{
	"Function": {"apply", "bind", "call"},
	"Object":   {"__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"},
	"RegExp":   {"compile"},
}

func (m *machine) prototype(name string) *goja.Object {
	constructor, ok := m.runtime.Get(name).(*goja.Object)
	if ok {
		if prototype, ok := constructor.Get("prototype").(*goja.Object); ok {
			return prototype
		}
	}
	panic("syncpatch: JavaScript has no " + name)
}

func (m *machine) must(err error) {
	if err != nil {
		panic(fmt.Errorf("syncpatch: preparing the objects of JavaScript: %w", err))
	}
}

// guarded are the methods of strings whose arguments are checked before they run: patterns that an expression makes
// while it runs are held to what written ones are, and texts do not outgrow a result.
var guarded = map[string]func(m *machine, this goja.Value, arguments []goja.Value){
	"match":    (*machine).checkPattern,
	"matchAll": (*machine).checkPattern,
	"search":   (*machine).checkPattern,
	"padEnd":   (*machine).checkLength,
	"padStart": (*machine).checkLength,
	"repeat":   (*machine).checkRepeat,
}

var allGuards = slices.Sorted(maps.Keys(guarded))

func (m *machine) guard(name string, check func(m *machine, this goja.Value, arguments []goja.Value)) {
	prototype := m.prototype("String")
	original, ok := goja.AssertFunction(prototype.Get(name))
	if !ok {
		panic("syncpatch: JavaScript has no method " + name)
	}
	checked := m.runtime.ToValue(func(call goja.FunctionCall) goja.Value {
		check(m, call.This, call.Arguments)
		out, err := original(call.This, call.Arguments...)
		if err != nil {
			panic(err)
		}
		return out
	})
	m.must(prototype.DefineDataProperty(name, checked, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
}

func (m *machine) checkPattern(_ goja.Value, arguments []goja.Value) {
	if len(arguments) == 0 {
		return
	}
	if o, ok := arguments[0].(*goja.Object); ok && o.ClassName() == "RegExp" {
		return
	}
	// matchAll adds the flag g.
	if err := checkPattern(arguments[0].String(), "g"); err != nil {
		m.throw(err)
	}
}

func (m *machine) checkLength(_ goja.Value, arguments []goja.Value) {
	if len(arguments) > 0 && arguments[0].ToFloat() > float64(m.limits.Result) {
		m.throw(m.limits.Exceeded(LimitResult))
	}
}

func (m *machine) checkRepeat(this goja.Value, arguments []goja.Value) {
	if len(arguments) > 0 && arguments[0].ToFloat()*float64(len(this.String())) > float64(m.limits.Result) {
		m.throw(m.limits.Exceeded(LimitResult))
	}
}

func (m *machine) text(text string, err error) goja.Value {
	if err != nil {
		m.throw(err)
	}
	return m.runtime.ToValue(text)
}

// throw ends the expression with an error of ours, at the position of the call.
func (m *machine) throw(err error) {
	panic(m.runtime.NewGoError(&EvaluationError{Message: err.Error()}))
}

// encodeBase64 is btoa of browsers: each character is a byte. Source: Spec 2.8 rule 3.
func encodeBase64(text string) (string, error) {
	data := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return "", fmt.Errorf("btoa: the text holds %q, which is not one byte", r)
		}
		data = append(data, byte(r))
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// decodeBase64 is atob of browsers: white space is skipped, padding may be missing, each byte is a character.
// Source: Spec 2.8 rule 3.
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

// stopwatch interrupts a runtime when its time is over. An interrupt that comes too late reaches nobody.
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

// stop says whether the time was over.
func (s *stopwatch) stop() bool {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtime = nil
	return s.fired
}

// variables are the members of context. It shows the evaluation's own data, which nothing can change: no copy is made
// of it.
func (m *machine) variables() map[string]goja.Value {
	config := m.about.Tenant.Config
	if config == nil {
		config = map[string]any{}
	}
	return map[string]goja.Value{
		"hostObject": m.viewOrNull(m.about.HostObject),
		"path":       goja.Undefined(),
		"tenant": m.view(map[string]any{
			"name": m.about.Tenant.Name, "namespace": m.about.Tenant.Namespace, "config": config,
		}),
		"virtualObject": m.viewOrNull(m.about.VirtualObject),
	}
}

func (m *machine) viewOrNull(object map[string]any) goja.Value {
	if object == nil {
		return goja.Null()
	}
	return m.view(object)
}

// view shows a JSON value without a copy and without a way to change it.
func (m *machine) view(value any) goja.Value {
	switch v := value.(type) {
	case nil:
		return goja.Null()
	case map[string]any:
		return m.runtime.NewDynamicObject(&frozenObject{m: m, source: v, values: map[string]goja.Value{}})
	case []any:
		return m.runtime.NewDynamicArray(&frozenArray{m: m, source: v, values: map[int]goja.Value{}})
	default:
		return m.runtime.ToValue(v)
	}
}

// frozenObject is a JSON object that refuses every change. What it holds is made when it is first read, once: the same
// member is the same object.
type frozenObject struct {
	m      *machine
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
	f.values[key] = f.m.view(item)
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

func (*frozenObject) Set(string, goja.Value) bool { return false }
func (f *frozenObject) Delete(key string) bool    { return !f.Has(key) }

// frozenArray is the same for an array.
type frozenArray struct {
	m      *machine
	source []any
	values map[int]goja.Value
}

func (f *frozenArray) Len() int { return len(f.source) }

func (f *frozenArray) Get(i int) goja.Value {
	if i < 0 || i >= len(f.source) {
		return nil
	}
	if _, ok := f.values[i]; !ok {
		f.values[i] = f.m.view(f.source[i])
	}
	return f.values[i]
}

func (*frozenArray) Set(int, goja.Value) bool { return false }
func (*frozenArray) SetLen(int) bool          { return false }
