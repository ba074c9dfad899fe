// Package generated holds the schemas of the wire types, made by openapi-gen from their docstrings.
// Only the program in the folder above reads them, when the documents are made: no function links
// them, and nothing here is edited by hand. Source: ADR-0003.
package generated
