package model

// JSON is any JSON value, kept byte for byte: an object of another API, or a block whose fields the
// specification does not show. The zero value is JSON null. The text is not checked here. Source: ADR-0003.
type JSON struct {
	// Raw is the text of the value. Empty means null. Source: ADR-0003. In CBOR, the format between the
	// processes of this program, it is a byte string.
	Raw []byte `json:"-" cbor:"raw"`
}

// MarshalJSON returns the text unchanged. The encoding/json package refuses text that is not JSON.
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

// OpenAPISchemaType returns no type: the value can have any type.
func (JSON) OpenAPISchemaType() []string { return nil }

// OpenAPISchemaFormat returns no format: the value has none.
func (JSON) OpenAPISchemaFormat() string { return "" }
