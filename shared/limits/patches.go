package limits

// Bounds of sync patches, before they are parsed.
const (
	// Patches is the maximum number of patches of a list.
	Patches = 1000
	// ExpressionBytes is the maximum length of an expression, in bytes.
	ExpressionBytes = 16 << 10
	// ExpressionDepth is the maximum number of brackets and of operations in an expression that contain each other.
	ExpressionDepth = 250
	// ExpressionsBytes is the maximum length of all expressions of a request together, in bytes. It also bounds a
	// configuration, which may have the patches of many resources.
	ExpressionsBytes = 256 << 10
	// PatternSteps is the maximum number of steps of the regular expressions of an expression. A repetition repeats the
	// steps of what it repeats.
	PatternSteps = 10_000
	// PatchTraceBytes is the maximum size of the trace of an evaluation, in bytes.
	PatchTraceBytes = 1 << 20
)
