package expression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
)

// checker walks an expression and stops at the first node, name or pattern that is not on a list. New features of
// JavaScript are refused until they are listed here.
type checker struct {
	text   string
	file   *file.File
	scopes []scope
	depth  int
	// steps is the number of steps of the regular expressions so far.
	steps int
	err   error
	traits
}

// scope are the names that a function or block declares.
type scope map[string]bool

// namespaces are the objects whose listed members can be used, but not the objects themselves. Math.sign is missing
// because in this interpreter it returns a string unchanged.
var namespaces = map[string][]string{
	"Array": {"from", "isArray", "of"},
	"JSON":  {"parse", "stringify"},
	"Math": {"E", "LN10", "LN2", "LOG10E", "LOG2E", "PI", "SQRT1_2", "SQRT2", "abs", "cbrt", "ceil", "clz32", "exp", "floor",
		"fround", "hypot", "imul", "log", "log10", "log1p", "log2", "max", "min", "pow", "round", "sqrt", "trunc"},
	"Object": {"assign", "entries", "freeze", "fromEntries", "hasOwn", "is", "isFrozen", "keys", "values"},
}

// conversions are both functions and namespaces.
var conversions = map[string][]string{
	"Boolean": {},
	"Number": {"EPSILON", "MAX_SAFE_INTEGER", "MAX_VALUE", "MIN_SAFE_INTEGER", "MIN_VALUE", "NEGATIVE_INFINITY", "NaN",
		"POSITIVE_INFINITY", "isFinite", "isInteger", "isNaN", "isSafeInteger", "parseFloat", "parseInt"},
	"String": {"fromCharCode", "fromCodePoint"},
}

// values are the other global names.
var values = []string{
	"Infinity", "NaN", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "isFinite", "isNaN", "parseFloat",
	"parseInt", "undefined",
}

// classes can be used with new, but not by themselves.
var classes = []string{"Error", "Map", "Set"}

// members are the names that no expression may read. The realm also removes them, because an expression may compute a
// name.
var members = map[string]string{
	"__defineGetter__":   "it defines getters and setters",
	"__defineSetter__":   "it defines getters and setters",
	"__lookupGetter__":   "it reaches what all objects share",
	"__lookupSetter__":   "it reaches what all objects share",
	"__proto__":          "it reaches what all objects share",
	"constructor":        "it reaches code outside the expression",
	"localeCompare":      "its result depends on a locale; compare with <",
	"prototype":          "it reaches what all objects share",
	"toLocaleLowerCase":  "its result depends on a locale; use toLowerCase",
	"toLocaleString":     "its result depends on a locale; use toString",
	"toLocaleUpperCase":  "its result depends on a locale; use toUpperCase",
	"toLocaleDateString": "its result depends on a locale",
	"toLocaleTimeString": "its result depends on a locale",
}

func (c *checker) refuse(at file.Idx, format string, args ...any) {
	if c.err == nil {
		e := position(c.text, c.file.Position(int(at)-c.file.Base()))
		e.Message = fmt.Sprintf(format, args...)
		c.err = &e
	}
}

// enter counts nesting. If it returns true, leave must follow.
func (c *checker) enter(at file.Idx) bool {
	if c.err != nil {
		return false
	}
	if c.depth == maxNesting {
		c.refuse(at, "%s", tooDeep)
		return false
	}
	c.depth++
	return true
}

func (c *checker) leave() { c.depth-- }

func (c *checker) expressions(list []ast.Expression) {
	for _, e := range list {
		if e != nil {
			c.expression(e)
		}
	}
}

func (c *checker) expression(e ast.Expression) {
	if e == nil || !c.enter(e.Idx0()) {
		return
	}
	defer c.leave()
	switch n := e.(type) {
	case *ast.NullLiteral, *ast.BooleanLiteral, *ast.StringLiteral:
	case *ast.NumberLiteral:
		if strings.HasSuffix(n.Literal, "n") {
			c.refuse(n.Idx, "BigInt is not supported")
		}
	case *ast.RegExpLiteral:
		if !strings.HasPrefix(n.Literal, "/"+n.Pattern+"/"+n.Flags) {
			c.refuse(n.Idx, "the regular expression is not closed")
		} else if pattern, flags, steps, err := checkPattern(n.Pattern, n.Flags); err != nil {
			c.refuse(n.Idx, "%s", err)
		} else if c.steps += steps; c.steps > maxSteps {
			c.refuse(n.Idx, "%s", tooManySteps)
		} else {
			n.Pattern, n.Flags = pattern, flags
		}
	case *ast.TemplateLiteral:
		if n.Tag != nil {
			c.refuse(n.OpenQuote, "tagged templates are not supported")
		}
		c.expressions(n.Expressions)
	case *ast.Identifier:
		c.identifier(n)
	case *ast.ArrayLiteral:
		c.expressions(n.Value)
	case *ast.ObjectLiteral:
		for _, p := range n.Value {
			c.property(p)
		}
	case *ast.SpreadElement:
		c.expression(n.Expression)
	case *ast.SequenceExpression:
		c.expressions(n.Sequence)
	case *ast.ConditionalExpression:
		c.expressions([]ast.Expression{n.Test, n.Consequent, n.Alternate})
	case *ast.BinaryExpression:
		if n.Operator == token.INSTANCEOF {
			c.refuse(n.Idx0(), "instanceof is not supported; use typeof or Array.isArray")
		}
		c.expression(n.Left)
		c.expression(n.Right)
		switch n.Operator {
		case token.LOGICAL_AND, token.LOGICAL_OR, token.COALESCE:
			// The compiler evaluates constants on the left, twice at each level. A sequence is never a constant.
			n.Left = &ast.SequenceExpression{Sequence: []ast.Expression{n.Left}}
		default:
		}
	case *ast.UnaryExpression:
		c.unary(n)
	case *ast.AssignExpression:
		c.target(n.Left)
		c.expression(n.Right)
	case *ast.DotExpression:
		c.member(n.Left, n.Identifier.Name.String(), n.Identifier.Idx)
	case *ast.BracketExpression:
		if name, ok := n.Member.(*ast.StringLiteral); ok {
			c.member(n.Left, name.Value.String(), name.Idx)
			return
		}
		if _, ok := n.Member.(*ast.NumberLiteral); !ok {
			c.computes = true
		}
		c.expression(n.Left)
		c.expression(n.Member)
	case *ast.OptionalChain:
		c.expression(n.Expression)
	case *ast.Optional:
		c.expression(n.Expression)
	case *ast.CallExpression:
		c.call(n)
	case *ast.NewExpression:
		name, ok := n.Callee.(*ast.Identifier)
		if !ok || !slices.Contains(classes, name.Name.String()) || c.declared(name.Name.String()) {
			c.refuse(n.New, "new is supported only for Error, Map and Set")
		}
		c.expressions(n.ArgumentList)
	case *ast.ArrowFunctionLiteral:
		if n.Async {
			c.refuse(n.Start, "async functions are not supported")
		}
		c.function(n.ParameterList, n.Body)
	case *ast.FunctionLiteral:
		if n.Async || n.Generator {
			c.refuse(n.Function, "async functions and generators are not supported")
		}
		if n.Name != nil {
			c.scopes = append(c.scopes, scope{n.Name.Name.String(): true})
			defer func() { c.scopes = c.scopes[:len(c.scopes)-1] }()
		}
		c.function(n.ParameterList, n.Body)
	default:
		c.refuse(e.Idx0(), "%s is not supported", describe(e))
	}
}

func (c *checker) declared(name string) bool {
	return slices.ContainsFunc(c.scopes, func(s scope) bool { return s[name] })
}

func (c *checker) identifier(n *ast.Identifier) {
	name := n.Name.String()
	switch {
	case c.declared(name):
	case name == "value":
		c.readsValue = true
	case name == "context":
		c.readsContext = true
	case slices.Contains(parameters, name), slices.Contains(values, name):
	case conversions[name] != nil:
	case namespaces[name] != nil:
		c.refuse(n.Idx, "%s cannot be used by itself; use its members %s", name, name+"."+strings.Join(namespaces[name], ", "+name+"."))
	case slices.Contains(classes, name):
		c.refuse(n.Idx, "%s must be used with new", name)
	default:
		c.refuse(n.Idx, "%s is not defined; use %s or the usual functions of JavaScript", name, strings.Join(parameters, ", "))
	}
}

// member checks the read of a member whose name is in the text, as a value.
func (c *checker) member(left ast.Expression, name string, index file.Idx) {
	if global, list := c.global(left); list != nil {
		c.static(global, list, name, index)
		c.unproven = c.unproven || !slices.Contains(passable[global], name) && !slices.Contains(constants, global)
		return
	}
	c.key(name, index)
	c.expression(left)
}

// global returns the name of a global object with restricted members, and the members that can be used.
func (c *checker) global(e ast.Expression) (name string, list []string) {
	object, ok := e.(*ast.Identifier)
	if !ok || c.declared(object.Name.String()) {
		return "", nil
	}
	name = object.Name.String()
	if list = namespaces[name]; list == nil {
		list = conversions[name]
	}
	return name, list
}

// static checks the name of a member of a global object.
func (c *checker) static(global string, list []string, name string, at file.Idx) {
	if !slices.Contains(list, name) {
		c.refuse(at, "%s.%s is not supported; use one of %s", global, name, strings.Join(list, ", "))
	}
}

// indirect are the methods of functions. The realm removes them. The fields of an object may have such names.
var indirect = map[string]string{
	"apply": "use spread, f(...list)",
	"bind":  "use an arrow function",
	"call":  "call the function itself",
}

func (c *checker) call(n *ast.CallExpression) {
	c.callee(n.Callee, n.ArgumentList)
	c.expressions(n.ArgumentList)
}

// callee checks the callee of a call. A method that is not known to leave all built-in objects unchanged makes the
// expression unproven. A function that is not called as a member has no this, so it cannot change a built-in object.
func (c *checker) callee(e ast.Expression, arguments []ast.Expression) {
	if e == nil || !c.enter(e.Idx0()) {
		return
	}
	defer c.leave()
	switch n := e.(type) {
	case *ast.OptionalChain:
		c.callee(n.Expression, arguments)
	case *ast.Optional:
		c.callee(n.Expression, arguments)
	case *ast.DotExpression:
		c.method(n.Left, n.Identifier.Name.String(), n.Identifier.Idx, arguments)
	case *ast.BracketExpression:
		if name, ok := n.Member.(*ast.StringLiteral); ok {
			c.method(n.Left, name.Value.String(), name.Idx, arguments)
			return
		}
		c.unproven = true
		c.expression(n)
	default:
		c.expression(n)
	}
}

// method checks the call of a method whose name is in the text.
func (c *checker) method(left ast.Expression, name string, index file.Idx, arguments []ast.Expression) {
	if reason, ok := indirect[name]; ok {
		c.refuse(index, "%s is not supported: %s", name, reason)
	}
	if global, list := c.global(left); list != nil {
		c.static(global, list, name, index)
		if !c.harmlessStatic(global, name, arguments) {
			c.unproven = true
		}
		return
	}
	if most, ok := methods[name]; !ok || most >= 0 && (len(arguments) > most || spreads(arguments)) {
		c.unproven = true
	}
	c.name(name, index)
	c.expression(left)
}

func (c *checker) unary(n *ast.UnaryExpression) {
	switch n.Operator {
	case token.INCREMENT, token.DECREMENT:
		c.target(n.Operand)
		return
	case token.DELETE:
		c.unproven = true
	default:
	}
	c.expression(n.Operand)
}

// target checks the target of an assignment: a variable that the expression declares, the variable value, a member, or
// a pattern of these.
func (c *checker) target(e ast.Expression) {
	if e == nil || !c.enter(e.Idx0()) {
		return
	}
	defer c.leave()
	switch n := e.(type) {
	case *ast.Identifier:
		name := n.Name.String()
		if name == "value" {
			c.readsValue = true
		} else if !c.declared(name) {
			c.refuse(n.Idx, "%s is not a variable of this expression", name)
		}
	case *ast.DotExpression, *ast.BracketExpression:
		c.unproven = true
		c.expression(n)
	case *ast.AssignExpression:
		c.target(n.Left)
		c.expression(n.Right)
	case *ast.ArrayPattern, *ast.ObjectPattern:
		c.pattern(n, c.target)
	default:
		c.refuse(e.Idx0(), "an assignment to %s is not supported", describe(e))
	}
}

// pattern checks a destructuring pattern, and calls leaf for each target in it.
func (c *checker) pattern(e ast.Expression, leaf func(ast.Expression)) {
	if e == nil || !c.enter(e.Idx0()) {
		return
	}
	defer c.leave()
	switch n := e.(type) {
	case *ast.ArrayPattern:
		for _, element := range n.Elements {
			c.pattern(element, leaf)
		}
		c.pattern(n.Rest, leaf)
	case *ast.ObjectPattern:
		for _, p := range n.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				c.key(p.Name.Name.String(), p.Name.Idx)
				leaf(&p.Name)
				c.expression(p.Initializer)
			case *ast.PropertyKeyed:
				c.propertyKey(p)
				c.pattern(p.Value, leaf)
			default:
				c.refuse(p.Idx0(), "%s is not supported in a pattern", describe(p))
			}
		}
		c.pattern(n.Rest, leaf)
	case *ast.AssignExpression:
		c.pattern(n.Left, leaf)
		c.expression(n.Right)
	case *ast.Binding:
		c.pattern(n.Target, leaf)
		c.expression(n.Initializer)
	default:
		leaf(e)
	}
}

// key checks the name of a member that is read as a value. A method that changes its object could be applied to any
// object if it were passed around.
func (c *checker) key(name string, at file.Idx) {
	c.unproven = c.unproven || slices.Contains(mutators, name)
	c.name(name, at)
}

func (c *checker) name(name string, at file.Idx) {
	if slices.Contains(allGuards, name) && !slices.Contains(c.guards, name) {
		c.guards = append(c.guards, name)
	}
	if reason, ok := members[name]; ok {
		c.refuse(at, "%s is not supported: %s", name, reason)
	}
}

func (c *checker) propertyKey(p *ast.PropertyKeyed) {
	if name, ok := p.Key.(*ast.StringLiteral); ok {
		c.key(name.Value.String(), name.Idx)
		return
	}
	if p.Computed {
		c.computes = true
		c.expression(p.Key)
	}
}

func (c *checker) property(p ast.Property) {
	switch p := p.(type) {
	case *ast.PropertyShort:
		c.identifier(&p.Name)
		if p.Initializer != nil {
			c.refuse(p.Name.Idx, "a default value is supported only in a pattern")
		}
	case *ast.PropertyKeyed:
		if p.Kind != ast.PropertyKindValue && p.Kind != ast.PropertyKindMethod {
			c.refuse(p.Key.Idx0(), "getters and setters are not supported")
		}
		if name, ok := p.Key.(*ast.StringLiteral); ok && name.Value == "__proto__" {
			c.refuse(name.Idx, "__proto__ is not supported: %s", members["__proto__"])
		}
		if p.Computed {
			c.expression(p.Key)
		}
		c.expression(p.Value)
	case *ast.SpreadElement:
		c.expression(p.Expression)
	default:
		c.refuse(p.Idx0(), "%s is not supported", describe(p))
	}
}

// function checks the parameters and the body of a function.
func (c *checker) function(list *ast.ParameterList, body ast.Node) {
	names := scope{}
	c.scopes = append(c.scopes, names)
	defer func() { c.scopes = c.scopes[:len(c.scopes)-1] }()
	declare := c.declare(names)
	for _, b := range list.List {
		c.pattern(b.Target, declare)
		c.expression(b.Initializer)
	}
	c.pattern(list.Rest, declare)
	switch b := body.(type) {
	case *ast.ExpressionBody:
		c.expression(b.Expression)
	case *ast.BlockStatement:
		c.block(b.List)
	default:
		c.refuse(body.Idx0(), "%s is not supported", describe(body))
	}
}

// declare returns a function that adds a bound name to a scope.
func (c *checker) declare(names scope) func(ast.Expression) {
	return func(e ast.Expression) {
		if name, ok := e.(*ast.Identifier); ok {
			names[name.Name.String()] = true
		} else {
			c.refuse(e.Idx0(), "expected a name")
		}
	}
}

// block checks statements. The names that they declare are known in the whole block.
func (c *checker) block(list []ast.Statement) {
	names := scope{}
	c.scopes = append(c.scopes, names)
	defer func() { c.scopes = c.scopes[:len(c.scopes)-1] }()
	for _, s := range list {
		if d, ok := s.(*ast.LexicalDeclaration); ok {
			for _, b := range d.List {
				bound(b.Target, names)
			}
		}
	}
	for _, s := range list {
		c.statement(s)
	}
}

// bound adds the names of a pattern to a scope, before the pattern is checked.
func bound(e ast.Expression, names scope) {
	switch n := e.(type) {
	case *ast.Identifier:
		names[n.Name.String()] = true
	case *ast.ArrayPattern:
		for _, element := range n.Elements {
			bound(element, names)
		}
		bound(n.Rest, names)
	case *ast.ObjectPattern:
		for _, p := range n.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				names[p.Name.Name.String()] = true
			case *ast.PropertyKeyed:
				bound(p.Value, names)
			}
		}
		bound(n.Rest, names)
	case *ast.AssignExpression:
		bound(n.Left, names)
	case *ast.Binding:
		bound(n.Target, names)
	}
}

func (c *checker) bindings(list []*ast.Binding) {
	names := c.scopes[len(c.scopes)-1]
	for _, b := range list {
		c.pattern(b.Target, c.declare(names))
		c.expression(b.Initializer)
	}
}

// inner runs check in a new scope.
func (c *checker) inner(check func()) {
	c.scopes = append(c.scopes, scope{})
	check()
	c.scopes = c.scopes[:len(c.scopes)-1]
}

// statement checks a statement in the body of a function. The limit of time ends endless loops.
func (c *checker) statement(s ast.Statement) {
	if s == nil || !c.enter(s.Idx0()) {
		return
	}
	defer c.leave()
	switch n := s.(type) {
	case *ast.EmptyStatement:
	case *ast.ExpressionStatement:
		c.expression(n.Expression)
	case *ast.ReturnStatement:
		c.expression(n.Argument)
	case *ast.ThrowStatement:
		c.expression(n.Argument)
	case *ast.BlockStatement:
		c.block(n.List)
	case *ast.LexicalDeclaration:
		c.bindings(n.List)
	case *ast.IfStatement:
		c.expression(n.Test)
		c.statement(n.Consequent)
		c.statement(n.Alternate)
	case *ast.WhileStatement:
		c.expression(n.Test)
		c.statement(n.Body)
	case *ast.DoWhileStatement:
		c.statement(n.Body)
		c.expression(n.Test)
	case *ast.ForStatement:
		c.inner(func() {
			switch i := n.Initializer.(type) {
			case nil:
			case *ast.ForLoopInitializerExpression:
				c.expression(i.Expression)
			case *ast.ForLoopInitializerLexicalDecl:
				c.bindings(i.LexicalDeclaration.List)
			default:
				c.refuse(n.For, "%s is not supported", describe(i))
			}
			c.expression(n.Test)
			c.expression(n.Update)
			c.statement(n.Body)
		})
	case *ast.ForOfStatement:
		c.each(n.For, n.Into, n.Source, n.Body)
	case *ast.ForInStatement:
		c.each(n.For, n.Into, n.Source, n.Body)
	case *ast.BranchStatement:
		if n.Label != nil {
			c.refuse(n.Idx, "labels are not supported")
		}
	default:
		c.refuse(s.Idx0(), "%s is not supported", describe(s))
	}
}

func (c *checker) each(index file.Idx, into ast.ForInto, source ast.Expression, body ast.Statement) {
	c.expression(source)
	c.inner(func() {
		if d, ok := into.(*ast.ForDeclaration); ok {
			c.pattern(d.Target, c.declare(c.scopes[len(c.scopes)-1]))
		} else {
			c.refuse(index, "a loop must declare its variable with const or let")
		}
		c.statement(body)
	})
}
