// Package expression is the language of sync patches: one expression of JavaScript. It parses a text, checks it against
// lists of allowed syntax, compiles it and runs it on a value, within limits of time, size and depth. An expression
// reaches nothing but its variables, and the same input always gives the same result. The limits hold between the
// operations of the interpreter: a single operation can take any time and memory. Package worker therefore runs
// expressions in processes of their own. The package knows nothing of paths, objects and patches. Source: Spec 2.8;
// ADR-0014.
package expression

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/unistring"
)

// SyntaxError says why a text is not a valid expression.
type SyntaxError struct {
	// Message is the reason, without the position.
	Message string
	// Line and Column are its position, from 1; columns count characters.
	Line, Column int
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// Error says why an expression failed: it threw an error, returned a value that JSON cannot represent, or exceeded a
// limit.
type Error struct {
	// Message is the reason. It names the limit that was exceeded, if any.
	Message string
	// Line and Column are the position in the expression, from 1. 0 means not known.
	Line, Column int
}

func (e *Error) Error() string { return e.Message }

// Expression is a compiled expression. It has no state, and is safe for concurrent use.
type Expression struct {
	text    string
	program *goja.Program
	// steps is the number of steps of its regular expressions.
	steps int
	// alwaysNull reports whether the expression is the literal null or undefined, which always deletes the field.
	alwaysNull bool
	traits
}

// AlwaysNull reports whether the expression is the literal null or undefined.
func (e *Expression) AlwaysNull() bool { return e.alwaysNull }

// ReadsValue reports whether the variable value appears in the expression.
func (e *Expression) ReadsValue() bool { return e.readsValue }

// Mentions reports whether a text is part of the text of the expression.
func (e *Expression) Mentions(text string) bool { return strings.Contains(e.text, text) }

// traits are the properties of an expression that are known before it runs.
type traits struct {
	// readsValue and readsContext report whether these variables appear in the expression.
	readsValue, readsContext bool
	// unproven reports whether the expression may change a built-in object of JavaScript, which outlives the run.
	unproven bool
	// computes reports whether the expression reads members whose names are known only at run time.
	computes bool
	// guards are the methods that the expression reads by name and whose arguments the realm must check.
	guards []string
}

// Compile parses, checks and compiles a text: one expression of ES6 with the additions of later editions, as far as its
// nodes, names and patterns are allowed. Its errors are *SyntaxError. The time of the parser can double with each
// character, so a program that does not trust the text must compile it in a process that can be stopped. Results are
// cached, up to maxCompiled bytes. Source: Spec 2.8; ADR-0014.
func Compile(text string) (*Expression, error) {
	if c, ok := compiled.get(text); ok {
		return c.expression, c.err
	}
	e, err := parse(text)
	if len(text) <= MaxLength {
		compiled.add(strings.Clone(text), compilation{e, err})
	}
	return e, err
}

// Forget empties the cache of Compile. Expressions in use stay valid.
func Forget() { compiled.forget() }

// parameters are the variables of an expression, in the order of the arguments that a realm passes.
var parameters = []string{"value", "valueExists", "context", "atob", "btoa", "virtualToHostDNS"}

func parse(text string) (*Expression, error) {
	if err := Scan(text); err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, &SyntaxError{"the expression is empty", 1, 1}
	}
	program, err := parseIn("(", text, ")")
	if err != nil {
		return nil, err
	}
	// A text like `1) + (2` closes the parentheses around it. It cannot close brackets as well.
	if _, err := parseIn("[", text, "]"); err != nil {
		return nil, err
	}
	var body ast.Expression
	if len(program.Body) == 1 {
		if statement, ok := program.Body[0].(*ast.ExpressionStatement); ok {
			body = statement.Expression
		}
	}
	if body == nil {
		return nil, &SyntaxError{"expected one expression, statements are not supported", 1, 1}
	}
	c := &checker{text: text, file: program.File}
	c.expression(body)
	if c.err != nil {
		return nil, c.err
	}
	function := &ast.ArrowFunctionLiteral{
		Start:         body.Idx0(),
		ParameterList: &ast.ParameterList{Opening: body.Idx0(), Closing: body.Idx1()},
		Body:          &ast.ExpressionBody{Expression: body},
	}
	for _, name := range parameters {
		function.ParameterList.List = append(function.ParameterList.List, &ast.Binding{
			Target: &ast.Identifier{Name: unistring.String(name), Idx: body.Idx0()},
		})
	}
	program.Body = []ast.Statement{&ast.ExpressionStatement{Expression: function}}
	compiled, err := goja.CompileAST(program, true)
	if err != nil {
		return nil, compilerError(text, err)
	}
	return &Expression{
		text: strings.Clone(text), program: compiled, steps: c.steps, alwaysNull: alwaysNull(body), traits: c.traits,
	}, nil
}

// parseIn parses the text between two brackets. The closing bracket is on a line of its own, behind any comment.
func parseIn(open, text, closing string) (*ast.Program, error) {
	program, err := parser.ParseFile(nil, "", open+text+"\n"+closing, 0, parser.WithDisableSourceMaps)
	if err == nil {
		return program, nil
	}
	var list parser.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		first := list[0]
		errorAt := position(text, first.Position)
		message := syntaxMessage(first.Message)
		if strings.HasPrefix(message, "Unexpected") {
			message += "; expected one expression, statements are not supported"
		}
		if errorAt.Line > strings.Count(text, "\n")+1 {
			message = "the expression ends too early"
			errorAt = endOf(text)
		}
		errorAt.Message = message
		return nil, &errorAt
	}
	return nil, &SyntaxError{syntaxMessage(err.Error()), 1, 1}
}

func endOf(text string) SyntaxError {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return SyntaxError{Line: strings.Count(text, "\n") + 1, Column: len([]rune(last)) + 1}
}

// position returns the position in the text for a position of the parser, which counts bytes and the opening bracket.
func position(text string, p file.Position) SyntaxError {
	line := text
	for range p.Line - 1 {
		_, line, _ = strings.Cut(line, "\n")
	}
	before := p.Column - 1
	if p.Line == 1 {
		before--
	}
	before = min(max(before, 0), len(line))
	return SyntaxError{Line: max(p.Line, 1), Column: utf8.RuneCountInString(line[:before]) + 1}
}

// compilerError returns the error of the compiler, for example about a name that is declared twice.
func compilerError(text string, err error) error {
	var syntax *goja.CompilerSyntaxError
	if !errors.As(err, &syntax) {
		return &SyntaxError{syntaxMessage(err.Error()), 1, 1}
	}
	at := SyntaxError{Line: 1, Column: 1}
	if syntax.File != nil {
		at = position(text, syntax.File.Position(syntax.Offset))
	}
	at.Message = syntaxMessage(syntax.Message)
	return &at
}

func alwaysNull(body ast.Expression) bool {
	switch n := body.(type) {
	case *ast.NullLiteral:
		return true
	case *ast.Identifier:
		return n.Name == "undefined"
	case *ast.UnaryExpression:
		if n.Operator.String() != "void" {
			return false
		}
		switch n.Operand.(type) {
		case *ast.NumberLiteral, *ast.StringLiteral, *ast.NullLiteral, *ast.BooleanLiteral:
			return true
		}
	}
	return false
}
