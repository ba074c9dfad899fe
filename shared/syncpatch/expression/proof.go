package expression

import "github.com/dop251/goja/ast"

// An expression is proven if it cannot change a built-in object of JavaScript. Then its runs share these objects; any
// other expression gets new ones for each run. The proof is a list of what is harmless, so that what nobody thought of is
// not proven. It rests on three facts: an expression reaches built-in functions, but no prototype; it has no this; and
// the methods that change an array or Map change the one that they are called on. So nothing is changed by
//   - an assignment, an update or a delete, unless it is for a variable: these are never proven,
//   - a method that is called as a member and is listed here,
//   - a function that gets no this. Methods that pass one to a callback are not proven when they are given one.

// methods are the methods that may be called, whatever they are called on. The number is how many arguments are
// harmless, after which a this for the callback follows; -1 is any number.
var methods = func() map[string]int {
	all := map[string]int{}
	for _, name := range []string{
		// String
		"at", "charAt", "charCodeAt", "codePointAt", "concat", "endsWith", "includes", "indexOf", "isWellFormed", "lastIndexOf",
		"match", "matchAll", "normalize", "padEnd", "padStart", "repeat", "replace", "replaceAll", "search", "slice", "split",
		"startsWith", "substr", "substring", "toLowerCase", "toString", "toUpperCase", "toWellFormed", "trim", "trimEnd",
		"trimStart", "valueOf",
		// Array
		"flat", "join", "reduce", "reduceRight", "toReversed", "toSorted", "toSpliced", "with",
		// Array, Map and Set, and their iterators
		"add", "clear", "delete", "entries", "get", "has", "keys", "next", "set", "values",
		// Number, RegExp and Object
		"exec", "hasOwnProperty", "test", "toExponential", "toFixed", "toPrecision",
	} {
		all[name] = -1
	}
	for _, name := range mutators {
		all[name] = -1
	}
	for _, name := range []string{
		"every", "filter", "find", "findIndex", "findLast", "findLastIndex", "flatMap", "forEach", "map", "some",
	} {
		all[name] = 1
	}
	return all
}()

// mutators are the methods that change an array. A call changes the array that it is made on, which belongs to the
// expression: no shared object has these methods.
var mutators = []string{"copyWithin", "fill", "pop", "push", "reverse", "shift", "sort", "splice", "unshift"}

// passable are the functions of global objects that may be passed around: they change neither this nor an argument, and
// pass no this to a callback.
var passable = map[string][]string{
	"Array":  {"isArray"},
	"Object": {"entries", "fromEntries", "hasOwn", "is", "isFrozen", "keys", "values"},
}

// constants are the global objects whose members are all passable.
var constants = []string{"Boolean", "Math", "Number", "String"}

// harmlessStatic reports whether a call of a function of a global object is proven.
func (c *checker) harmlessStatic(global, name string, arguments []ast.Expression) bool {
	switch global + "." + name {
	case "Object.assign", "Object.freeze":
		return len(arguments) > 0 && isLiteral(arguments[0])
	case "Array.from":
		return len(arguments) <= 2 && !spreads(arguments)
	default:
		return true
	}
}

// isLiteral reports whether an expression makes a new object or array.
func isLiteral(e ast.Expression) bool {
	switch e.(type) {
	case *ast.ObjectLiteral, *ast.ArrayLiteral:
		return true
	default:
		return false
	}
}

func spreads(arguments []ast.Expression) bool {
	for _, argument := range arguments {
		if _, ok := argument.(*ast.SpreadElement); ok {
			return true
		}
	}
	return false
}
