package model

// JSON is any JSON value, kept byte for byte: an object of another API, or a block whose fields the
// specification does not show. Its zero value is JSON null. It is not checked here. Source: ADR-0003.
type JSON struct {
	// Raw is the text of the value. Empty means null. CBOR, which processes of one program speak, has it as bytes.
	Raw []byte `json:"-" cbor:"raw"`
}

// MarshalJSON returns the text as it is; encoding/json refuses it when it is no JSON.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j.Raw) == 0 {
		return []byte("null"), nil
	}
	return j.Raw, nil
}

// UnmarshalJSON keeps a copy of the text.
func (j *JSON) UnmarshalJSON(text []byte) error {
	j.Raw = append([]byte(nil), text...)
	return nil
}

// OpenAPISchemaType says that every type of value is possible.
func (JSON) OpenAPISchemaType() []string { return nil }

// OpenAPISchemaFormat says that the value has no format.
func (JSON) OpenAPISchemaFormat() string { return "" }
