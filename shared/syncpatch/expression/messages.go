package expression

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"

	"management.platform.sh/shared/model/lazyregexp"
)

// This file is the only place where texts of the interpreter, its parser and the engines of regular expressions become
// texts of the platform. Texts in these lists are passed on or replaced. Any other text becomes a general message.
// Errors that an expression throws itself are not translated: they are the words of its author.

// saying is a text of the interpreter, and the message of the platform in its place. An empty message means the same
// words.
type saying struct {
	pattern func() *regexp.Regexp
	ours    string
}

func say(pattern, ours string) saying {
	return saying{lazyregexp.New(`(?s)^(?:` + pattern + `)$`), ours}
}

// translate returns the message of the platform for a text of the interpreter.
func translate(sayings []saying, theirs, otherwise string) string {
	for _, s := range sayings {
		if !s.pattern().MatchString(theirs) {
			continue
		}
		if s.ours == "" {
			return clip(theirs)
		}
		return clip(s.pattern().ReplaceAllString(theirs, s.ours))
	}
	return otherwise
}

// impossible is the message for an operation without a message of its own.
const impossible = "the operation is not possible with this value"

// operations are the errors of operations, without the name of their class.
var operations = []saying{
	say(`Cannot read property '.*' of (undefined|null|undefined or null)`, ""),
	say(`Cannot (convert undefined or null to object|access a variable before initialization)`, ""),
	say(`Object has no member '.*'`, ""),
	say(`\S+ is not defined`, ""),
	say(`Assignment to constant variable\.?`, ""),
	say(`No initial value|Reduce of empty array with no initial value`, "Reduce of empty array with no initial value"),
	say(`The comparison function must be either a function or undefined`, ""),
	say(`The normalization form should be one of NFC, NFD, NFKC, NFKD`, ""),
	say(`First argument to String\.prototype\.\w+ must not be a regular expression`, ""),
	say(`String\.prototype\.replaceAll called with a non-global RegExp argument`, ""),
	say(`(toFixed|toPrecision|toExponential|toString)\(\) (precision|radix argument) must be between \d+ and \d+`, ""),
	say(`Invalid array length`, ""),
	say(`Malformed URI`, ""),
	say(`context cannot be changed`, ""),
	say(`(atob|btoa|virtualToHostDNS) needs an argument`, ""),
	say(`'Set(Len)?' on a dynamic .*`, "context cannot be changed"),
	say(`Invalid (count value|code point|index).*`, "Invalid $1"),
	say(`RegExp doesn't have global flag set`, "matchAll needs a regular expression with the flag g"),
	say(`(Not a function: |object is not a function ).*|.* is not (a function|callable)\b.*|exec is not a function`, "the value that is called is not a function"),
	say(`.*is not iterable.*|iterator\.next is missing or not a function`, "the value is not iterable"),
	say(`Could not convert .* to primitive|Cannot convert object to primitive value`, "Could not convert object to primitive"),
	say(`.*called on incompatible receiver.*`, "the method is called on a value of another type"),
	say(`Cannot (assign to|redefine|delete) (?:read only )?property:? '?([^' ]*)'?.*`, "Cannot $1 property '$2'"),
	say(`.*not extensible.*`, "the object is frozen"),
	say(`Value is not an object.*`, "the value is neither an object nor a function"),
}

// sentences are the errors of the parser and the compiler.
var sentences = []saying{
	say(`Unexpected token ILLEGAL(; .*)?`, "Unexpected character$1"),
	say(`Unexpected (token \S{1,20}|end of input|identifier|number|string|reserved word|strict mode reserved word|escape|unicode character)(; .*)?`, ""),
	say(`Maximum nesting level \(\d+\) exceeded`, tooDeep),
	say(`(Invalid left-hand side|Invalid destructuring|Not a valid left-value|Malformed arrow function).*`, ""),
	say(`(Missing initializer|Rest (element|parameter) must be|Duplicate parameter name|Keyword must not contain).*`, ""),
	say(`Illegal (break|continue|return) statement|Illegal newline after throw|Illegal numeric literal`, ""),
	say(`(Octal (literals|escape sequences) are not|Assignment to eval|Delete of an unqualified|let is disallowed).*`, ""),
	say(`(Logical expressions and coalesce|Unary operator used|Lexical declaration cannot|Only one underscore).*`, ""),
	say(`Identifier '[^']*' has already been declared`, ""),
	say(`Invalid (UTF-8 character|Unicode escape|shorthand property initializer|template literal on optional chain|binding rest)`, ""),
	say(`Invalid identifier escape.*`, "Invalid Unicode escape"),
	say(`Invalid regular expression: missing /.*`, "the regular expression is not closed"),
	say(`Invalid regular expression.*`, "the regular expression is not valid"),
}

// syntaxMessage is the error of the parser or the compiler about a text.
func syntaxMessage(theirs string) string {
	return translate(sentences, strings.TrimPrefix(theirs, "SyntaxError: "), "the syntax is not valid")
}

// groups are the errors of the parser of patterns.
var groups = []saying{
	say(`Unterminated (group|character class)|Unmatched '\)'|Invalid group|Unsupported group name`, ""),
}

// patternMessage says why a pattern is not valid.
func patternMessage(err error) string {
	const invalid = "the regular expression is not valid"
	var wrong *syntax.Error
	if !errors.As(err, &wrong) {
		if why := translate(groups, err.Error(), ""); why != "" {
			return invalid + ": " + why
		}
		return invalid
	}
	switch wrong.Code {
	case syntax.ErrInvalidRepeatSize:
		return "a regular expression may repeat at most 1000 times"
	case syntax.ErrLarge:
		return tooManySteps
	case syntax.ErrNestingDepth:
		return invalid + ": it is nested too deeply"
	case syntax.ErrInvalidCharRange:
		return invalid + ": a range of characters is in the wrong order"
	case syntax.ErrInvalidRepeatOp, syntax.ErrMissingRepeatArgument:
		return invalid + ": nothing to repeat"
	case syntax.ErrMissingBracket:
		return invalid + ": Unterminated character class"
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return invalid + ": a parenthesis is missing"
	default:
		return invalid
	}
}

// natives are the classes of errors that only the interpreter creates: an expression can create nothing but an Error.
var natives = []string{"TypeError", "RangeError", "ReferenceError", "SyntaxError", "URIError", "EvalError", "AggregateError", "GoError"}

// describeThrown describes the error that ended an expression. Its toString may be a method of the expression, which may throw
// as well.
func (r *realm) describeThrown(value goja.Value) string {
	o, isObject := value.(*goja.Object)
	if isObject {
		for _, class := range natives {
			if o.Prototype() == r.prototype(class) {
				return r.describeNative(class, o)
			}
		}
	}
	var text string
	if r.runtime.Try(func() { text = value.String() }) != nil {
		return "the expression threw an object that cannot be converted to a string"
	}
	if !isObject || o.ClassName() != "Error" {
		return "the expression threw " + clip(text)
	}
	return clip(text)
}

// describeNative describes an error that the interpreter made.
func (r *realm) describeNative(class string, o *goja.Object) string {
	var theirs string
	_ = r.runtime.Try(func() { theirs = o.Get("message").String() })
	switch class {
	case "SyntaxError":
		// Only JSON.parse throws it: patterns are checked before.
		return "SyntaxError: the text is not JSON"
	case "GoError":
		return impossible
	default:
		return class + ": " + translate(operations, theirs, impossible)
	}
}

// fault is the error for a panic of the interpreter.
func fault(what any) *Error {
	if err, ok := what.(error); ok && strings.Contains(err.Error(), "makeslice") {
		return &Error{Message: "RangeError: an array or a text would be too long"}
	}
	return &Error{Message: "the interpreter failed at an operation of the expression"}
}

// describe names a node that is not supported, in the words of JavaScript.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.ThisExpression:
		return "this"
	case *ast.SuperExpression:
		return "super"
	case *ast.ClassLiteral, *ast.ClassDeclaration:
		return "a class"
	case *ast.YieldExpression:
		return "yield"
	case *ast.AwaitExpression:
		return "await"
	case *ast.MetaProperty:
		return "new.target"
	case *ast.PrivateDotExpression:
		return "a private member"
	case *ast.TryStatement:
		return "try"
	case *ast.WithStatement:
		return "with"
	case *ast.SwitchStatement, *ast.CaseStatement:
		return "switch"
	case *ast.DebuggerStatement:
		return "debugger"
	case *ast.LabelledStatement:
		return "a label"
	case *ast.FunctionDeclaration:
		return "a function declaration (use const and an arrow function)"
	case *ast.VariableStatement, *ast.ForLoopInitializerVarDeclList, *ast.ForIntoVar:
		return "var (use const or let)"
	case *ast.SpreadElement:
		return "spread"
	case *ast.CallExpression, *ast.OptionalChain, *ast.Optional:
		return "a call or an optional chain"
	default:
		return "this syntax"
	}
}
