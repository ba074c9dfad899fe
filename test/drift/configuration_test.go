package drift_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// schema has the members of an OpenAPI schema that the reference of the configuration is made from.
type schema struct {
	Ref         string            `json:"$ref"`
	AllOf       []schema          `json:"allOf"`
	Description string            `json:"description"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
}

// target returns the schema that a reference points to.
func (s schema) target(all map[string]schema) schema {
	for len(s.AllOf) > 0 {
		s = s.AllOf[0]
	}
	if s.Ref != "" {
		return all[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	return s
}

var (
	fieldRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| ([^|]*) \\| [^|]* \\|$")
	source   = regexp.MustCompile(`\s*Source: .*$`)
)

// configurationFields returns the fields of the configuration with their descriptions in the model. The providers of connectors are the same as
// the providers of auth.
func configurationFields(document string) (map[string]bool, error) {
	var openAPI struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(document), &openAPI); err != nil {
		return nil, err
	}
	all, fields := openAPI.Components.Schemas, map[string]bool{}
	providers := map[string]schema{}
	var walk func(of schema, prefix string)
	walk = func(of schema, prefix string) {
		for name, property := range of.Properties {
			meaning := source.ReplaceAllString(strings.Join(strings.Fields(property.Description), " "), "")
			fields[fmt.Sprintf("%s: %s", prefix+name, meaning)] = true
			inner, below := property.target(all), prefix+name+"."
			if inner.Items != nil {
				inner, below = inner.Items.target(all), prefix+name+"[]."
			}
			_, again := providers[name]
			if prefix == "" && name == "conditions" || prefix == "auth.connectors[]." && again {
				continue
			}
			walk(inner, below)
		}
	}
	for name, definition := range all {
		if strings.HasSuffix(name, ".ConfigStatus") {
			auth := definition.Properties["auth"].target(all)
			for provider, block := range auth.Properties["connectors"].Items.target(all).Properties {
				if _, ok := auth.Properties[provider]; ok {
					providers[provider] = block
				}
			}
			walk(definition, "")
		}
	}
	return fields, nil
}

func documentedFields(document string) map[string]bool {
	fields := map[string]bool{}
	for _, row := range fieldRow.FindAllStringSubmatch(document, -1) {
		if row[1] != "field" && !strings.HasPrefix(row[2], "---") {
			fields[row[1]+": "+row[2]] = true
		}
	}
	return fields
}

// The reference of the configuration has exactly the fields of the model, in the words of the model.
func TestConfigurationIsTheModel(t *testing.T) {
	t.Parallel()
	all := files(t)
	fields, err := configurationFields(all[documentsFolder+"openapi/v3/management.json"])
	if err != nil || len(fields) < 100 {
		t.Fatalf("%d fields, %v", len(fields), err)
	}
	_, reference, ok := strings.Cut(all["docs/configuration.md"], "\n## Fields\n")
	if !ok {
		t.Fatal("docs/configuration.md has no section Fields")
	}
	report(t, differences("the model", fields, "docs/configuration.md", documentedFields(reference)))
}

// The page describes every block and field of auth, and every field of auth.oidc.
func TestEffectsAreTold(t *testing.T) {
	t.Parallel()
	all := files(t)
	fields, err := configurationFields(all[documentsFolder+"openapi/v3/management.json"])
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(all["docs/configuration.md"], "\n## What takes effect here\n")
	section, _, found := strings.Cut(section, "\n## Fields\n")
	effects, detail, split := strings.Cut(section, "\nThe fields of `auth.oidc` in detail:\n")
	if !found || !split {
		t.Fatal("docs/configuration.md has other sections")
	}
	described := 0
	for field := range fields {
		name, _, _ := strings.Cut(field, ":")
		path := strings.Split(name, ".")
		switch {
		case path[0] != "auth" || len(path) < 2:
		case len(path) == 2 && !strings.Contains(effects, "`"+name+"`"), len(path) == 3 && path[1] == "oidc" && !strings.Contains(detail, "`"+path[2]+"`"):
			t.Errorf("docs/configuration.md does not say what %s does", name)
		default:
			described++
		}
	}
	if described < 30 {
		t.Errorf("%d fields of auth", described)
	}
}

func TestConfigurationFinds(t *testing.T) {
	t.Parallel()
	fields, err := configurationFields(`{"components":{"schemas":{"x.ConfigStatus":{"properties":{
		"host":{"description":"host is\nit. Source: Spec 1."},
		"auth":{"allOf":[{"$ref":"#/components/schemas/x.Auth"}],"description":"auth."}}},
		"x.Auth":{"properties":{"oidc":{"allOf":[{"$ref":"#/components/schemas/x.OIDC"}],"description":"o."},
			"connectors":{"description":"c.","items":{"allOf":[{"$ref":"#/components/schemas/x.Connector"}]}}}},
		"x.Connector":{"properties":{"id":{"description":"i."},"oidc":{"allOf":[{"$ref":"#/components/schemas/x.OIDC"}],"description":"o."}}},
		"x.OIDC":{"properties":{"issuer":{"description":"s."}}}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	const table = "| field | type | meaning | rule |\n|---|---|---|---|\n| `host` | string | host is it. | a host |\n| `auth` | object | auth. |  |\n" +
		"| `auth.oidc` | object | o. |  |\n| `auth.oidc.issuer` | string | s. |  |\n| `auth.connectors` | list of object | c. |  |\n| `auth.connectors[].id` | string | i. |  |\n"
	const last = "| `auth.connectors[].oidc` | object | o. |  |\n"
	expect(t, differences("the model", fields, "the page", documentedFields(table+last)))
	expect(t, differences("the model", fields, "the page", documentedFields(table+"| `colour` | string | c. |  |\n")),
		`the model has "auth.connectors[].oidc: o."`, `the page has "colour: c."`)
}
