package expression

import "github.com/dop251/goja/ast"

// An expression is proven if it cannot change a built-in object of JavaScript. Its runs then share these objects; any
// other expression gets new objects for each run. The proof is a list of harmless operations, so that an operation that
// the list forgets is not proven. The proof rests on three facts. An expression reaches built-in functions, but no
// prototype. It has no this. The methods that change an array or Map change the object that they are called on. So these
// change no built-in object:
//   - an assignment, an update or a delete of a variable; of any other target, they are never proven,
//   - a method that is called as a member and is listed here,
//   - a function that gets no this. Methods that pass a this to a callback are not proven when they are given one.

// methods are the methods that may be called on any object. The number is how many arguments are harmless: the argument
// after them is the this of the callback. -1 means any number.
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
