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

// ExpressionError is an expression that failed while it ran.
type ExpressionError struct {
	// Message is the reason, without the position.
	Message string
	// Line and Column are where in the text of the expression, from 1; 0 means not known.
	Line, Column int
}

// Error is the position, where it is known, and the reason.
func (e *ExpressionError) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// machine runs the expressions of one evaluation. It is for one goroutine, and of no use after an error.
type machine struct {
	limits  Limits
	context *Context
	spent   time.Duration
	watch   stopwatch

	// What follows belongs to one realm, which lasts until an expression that writes has run in it.
	runtime   *goja.Runtime
	functions map[*expression]goja.Callable
	globals   [3]goja.Value
	shared    map[string]goja.Value
}

// newMachine makes the machine for one evaluation. Source: ADR-0014.
func newMachine(limits Limits, context *Context) (*machine, error) {
	return &machine{limits: limits.WithDefaults(), context: context}, nil
}

// run evaluates an expression for the value at a concrete path. A result of null or undefined is deleted. Its errors
// are *ExpressionError and *LimitError.
func (m *machine) run(e *expression, value any, exists bool, path string) (any, bool, error) {
	if m.limits.Entering != nil {
		m.limits.Entering(path)
	}
	if m.runtime == nil {
		m.realm()
	}
	if e.writes {
		defer func() { m.runtime = nil }()
	}
	allowed, name := m.limits.ExpressionTime, LimitExpressionTime
	if left := m.limits.ObjectTime - m.spent; left < allowed {
		allowed, name = left, LimitObjectTime
	}
	if allowed <= 0 {
		return nil, false, m.limits.Exceeded(LimitObjectTime)
	}
	began := time.Now()
	m.watch.start(m.runtime, allowed, m.limits.Exceeded(name))
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

func (m *machine) evaluate(e *expression, value any, exists bool, path string) (any, bool, error) {
	call, err := m.function(e)
	if err != nil {
		return nil, false, m.failure(err)
	}
	input := goja.Undefined()
	if exists {
		input = m.toJS(value)
	}
	returned, err := call(goja.Undefined(), input, m.runtime.ToValue(exists), m.contextAt(path), m.globals[0], m.globals[1], m.globals[2])
	if err != nil {
		return nil, false, m.failure(err)
	}
	if goja.IsUndefined(returned) || goja.IsNull(returned) {
		return nil, true, nil
	}
	var out any
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
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit
	}
	var overflow *goja.StackOverflowError
	if errors.As(err, &overflow) {
		return m.limits.Exceeded(LimitDepth)
	}
	var thrown *goja.Exception
	if !errors.As(err, &thrown) {
		return &ExpressionError{Message: err.Error()}
	}
	failed := &ExpressionError{Message: "the expression threw a value"}
	switch v := thrown.Value().(type) {
	case *goja.Object:
		if inner, ok := v.Export().(error); ok && errors.As(inner, &limit) {
			return limit
		}
		if text, ok := describeError(v); ok {
			failed.Message = text
		}
	case goja.Value:
		failed.Message = clip(v.String())
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

// describeError is the name and message of an error object; nothing of the expression runs for it.
func describeError(o *goja.Object) (text string, ok bool) {
	if o.ClassName() != "Error" {
		return "", false
	}
	return clip(o.String()), true
}

// clip bounds what of a value goes into a message.
func clip(text string) string {
	if const_ := 300; len(text) > const_ {
		return strings.ToValidUTF8(text[:const_], "") + "..."
	}
	return text
}

// realm makes what the expressions find besides their value: the objects of JavaScript, without what leads from data
// to code or to a state that all share, and with patterns and lengths that are checked.
func (m *machine) realm() {
	r := goja.New()
	r.SetMaxCallStackSize(m.limits.Depth)
	r.SetRandSource(func() float64 { return 0 })
	r.SetTimeSource(func() time.Time { return time.Unix(0, 0).UTC() })
	m.runtime = r
	m.functions = map[*expression]goja.Callable{}
	m.shared = nil
	prototypes := map[string]*goja.Object{}
	for _, name := range []string{"Function", "Object", "Array", "String", "Number", "Boolean", "RegExp", "Map", "Set"} {
		prototypes[name] = r.Get(name).(*goja.Object).Get("prototype").(*goja.Object)
		m.must(prototypes[name].Delete("constructor"))
	}
	for name, list := range removed {
		for _, member := range list {
			m.must(prototypes[name].Delete(member))
		}
	}
	m.replace(prototypes["String"], "match", m.checkedPattern)
	m.replace(prototypes["String"], "matchAll", m.checkedPattern)
	m.replace(prototypes["String"], "search", m.checkedPattern)
	m.replace(prototypes["String"], "repeat", func(text goja.Value, arguments []goja.Value) {
		m.checkLength(float64(len(text.String())) * number(arguments, 0))
	})
	for _, name := range []string{"padStart", "padEnd"} {
		m.replace(prototypes["String"], name, func(_ goja.Value, arguments []goja.Value) { m.checkLength(number(arguments, 0)) })
	}
	m.globals = [3]goja.Value{
		r.ToValue(func(call goja.FunctionCall) goja.Value { return m.text(decodeBase64(call.Argument(0).String())) }),
		r.ToValue(func(call goja.FunctionCall) goja.Value { return m.text(encodeBase64(call.Argument(0).String())) }),
		r.ToValue(func(call goja.FunctionCall) goja.Value {
			return m.text(m.context.virtualToHostDNS(call.Argument(0).String()))
		}),
	}
}

// removed are the members of prototypes that lead to what objects share, or that make any function work on anything.
var removed = map[string][]string{
	"Function": {"apply", "bind", "call"},
	"Object":   {"__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"},
	"RegExp":   {"compile"},
}

func (m *machine) must(err error) {
	if err != nil {
		panic(fmt.Errorf("syncpatch: preparing the objects of JavaScript: %w", err))
	}
}

// replace puts a check in front of a method.
func (m *machine) replace(prototype *goja.Object, name string, check func(this goja.Value, arguments []goja.Value)) {
	original, ok := goja.AssertFunction(prototype.Get(name))
	if !ok {
		panic("syncpatch: JavaScript has no method " + name)
	}
	checked := m.runtime.ToValue(func(call goja.FunctionCall) goja.Value {
		check(call.This, call.Arguments)
		out, err := original(call.This, call.Arguments...)
		if err != nil {
			panic(err)
		}
		return out
	})
	m.must(prototype.DefineDataProperty(name, checked, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
}

// checkedPattern holds a pattern that is made while the expression runs to what a written one is held to.
func (m *machine) checkedPattern(_ goja.Value, arguments []goja.Value) {
	if len(arguments) == 0 {
		return
	}
	if o, ok := arguments[0].(*goja.Object); ok && o.ClassName() == "RegExp" {
		return
	}
	// matchAll adds the flag g.
	if err := checkPattern(arguments[0].String(), "g"); err != nil {
		panic(m.runtime.NewGoError(err))
	}
}

func (m *machine) checkLength(length float64) {
	if length > float64(m.limits.ResultSize) {
		panic(m.runtime.NewGoError(m.limits.Exceeded(LimitResultSize)))
	}
}

func number(arguments []goja.Value, i int) float64 {
	if i >= len(arguments) {
		return 0
	}
	return arguments[i].ToFloat()
}

func (m *machine) text(text string, err error) goja.Value {
	if err != nil {
		panic(m.runtime.NewGoError(err))
	}
	return m.runtime.ToValue(text)
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
	reason  error
	fired   bool
}

func (s *stopwatch) start(runtime *goja.Runtime, after time.Duration, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtime, s.reason, s.fired = runtime, reason, false
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
		s.runtime.Interrupt(s.reason)
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

// contextAt is the variable context. What does not change between two paths is made once for a realm, at its first use.
func (m *machine) contextAt(path string) goja.Value {
	return m.runtime.NewDynamicObject(frozenObject{m: m, key: "", source: map[string]any{
		"tenant": map[string]any{
			"name": m.context.Tenant.Name, "namespace": m.context.Tenant.Namespace, "config": m.context.Tenant.Config,
		},
		"hostObject": m.context.HostObject, "virtualObject": m.context.VirtualObject, "path": path,
	}})
}

var _ = maps.Keys[map[string]any]
var _ = slices.Sorted[string]
