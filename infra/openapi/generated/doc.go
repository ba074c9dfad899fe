// Package generated has the schemas of the wire types, made by openapi-gen from their docstrings. Only the program in
// the folder above uses them, when it writes the documents: no function links them, and no file here is edited by hand.
// Source: ADR-0003.
package generated
