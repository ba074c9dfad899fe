package drift_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
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

var source = regexp.MustCompile(`\s*Source: .*$`)

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

var (
	objectHeading = regexp.MustCompile(`(?m)^### (\w+)$`)
	fieldItem     = regexp.MustCompile("(?m)^- `([^`]+)`(?: \\(([^:]*)\\))?(?:: (.*))?$")
	objectLink    = regexp.MustCompile(`\[\w+\]\(#(\w+)\)`)
)

// documentedFields returns the fields below an object of the reference, with their meaning, in the form of configurationFields. Links lead to
// the objects below it.
func documentedFields(reference, object string) map[string]bool {
	sections, begins := map[string]string{}, objectHeading.FindAllStringSubmatchIndex(reference, -1)
	for i, at := range begins {
		end := len(reference)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		sections[strings.ToLower(reference[at[2]:at[3]])] = reference[at[1]:end]
	}
	fields, providers := map[string]bool{}, map[string]bool{}
	for _, row := range fieldItem.FindAllStringSubmatch(sections["configauth"], -1) {
		providers[row[1]] = true
	}
	var walk func(object, prefix string)
	walk = func(object, prefix string) {
		for _, row := range fieldItem.FindAllStringSubmatch(sections[object], -1) {
			name, kind := row[1], row[2]
			fields[prefix+name+": "+strings.NewReplacer("&lt;", "<", `\|`, "|").Replace(row[3])] = true
			link := objectLink.FindStringSubmatch(kind)
			if link == nil || prefix == "" && name == "conditions" || prefix == "auth.connectors[]." && providers[name] {
				continue
			}
			below := prefix + name + "."
			if strings.HasPrefix(kind, "list of ") {
				below = prefix + name + "[]."
			}
			walk(link[1], below)
		}
	}
	walk(object, "")
	return fields
}

// withoutName returns fields without the beginning of its meaning, which the reference leaves out: "name is" or "name".
func withoutName(fields map[string]bool) map[string]bool {
	short := map[string]bool{}
	for field := range fields {
		path, meaning, _ := strings.Cut(field, ": ")
		first, rest, _ := strings.Cut(meaning, " ")
		if name := path[strings.LastIndex(path, ".")+1:]; strings.EqualFold(first, name) {
			meaning = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
			meaning = strings.ToUpper(meaning[:1]) + meaning[1:]
		}
		short[path+": "+meaning] = true
	}
	return short
}

// The reference has exactly the fields of the configuration, in the words of the model, except those below blocks that are only stored. The page
// of the configuration sends readers there.
func TestConfigurationIsTheModel(t *testing.T) {
	t.Parallel()
	all := files(t)
	fields, err := configurationFields(all[documentsFolder+"openapi/v3/management.json"])
	if err != nil || len(fields) < 100 {
		t.Fatalf("%d fields, %v", len(fields), err)
	}
	if !strings.Contains(all["docs/configuration.md"], "(reference.md#configstatus)") {
		t.Error("docs/configuration.md does not name the reference of the fields")
	}
	storedBlocks := model.StoredBlocks()
	maps.DeleteFunc(fields, func(field string, _ bool) bool {
		path, _, _ := strings.Cut(field, ":")
		block, _, below := strings.Cut(path, ".")
		return below && slices.Contains(storedBlocks, block)
	})
	report(t, differences("the model", withoutName(fields), "docs/reference.md", documentedFields(all["docs/reference.md"], "configstatus")))
}

// The page describes every block of the configuration, every block and field of auth, and every field of auth.oidc.
func TestEffectsAreTold(t *testing.T) {
	t.Parallel()
	all := files(t)
	fields, err := configurationFields(all[documentsFolder+"openapi/v3/management.json"])
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(all["docs/configuration.md"], "\n## What takes effect here\n")
	section, _, found := strings.Cut(section, "\n## What a write refuses\n")
	effects, detail, split := strings.Cut(section, "\nThe fields of `auth.oidc` in detail:\n")
	_, stored, alsoSplit := strings.Cut(detail, "\n### What is only stored\n")
	if !found || !split || !alsoSplit {
		t.Fatal("docs/configuration.md has other sections")
	}
	described := 0
	for field := range fields {
		name, _, _ := strings.Cut(field, ":")
		path := strings.Split(name, ".")
		switch {
		case len(path) == 1 && name != "auth" && name != "conditions":
			if !strings.Contains(effects, "| `"+name) && !strings.Contains(stored, "| `"+name) {
				t.Errorf("docs/configuration.md says neither what %s does nor that it does nothing", name)
			}
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
		"auth":{"allOf":[{"$ref":"#/components/schemas/x.Auth"}],"description":"Signs in."}}},
		"x.Auth":{"properties":{"oidc":{"allOf":[{"$ref":"#/components/schemas/x.OIDC"}],"description":"O."},
			"connectors":{"description":"C.","items":{"allOf":[{"$ref":"#/components/schemas/x.Connector"}]}}}},
		"x.Connector":{"properties":{"id":{"description":"I."},"oidc":{"allOf":[{"$ref":"#/components/schemas/x.OIDC"}],"description":"O."}}},
		"x.OIDC":{"properties":{"issuer":{"description":"S."}}}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	const page = "### ConfigAuth\n\nAuth.\n\n- `connectors` (list of [Connector](#connector)): C.\n- `oidc` ([OIDC](#oidc)): O.\n\n" +
		"### ConfigStatus\n\nThe status.\n\n- `auth` ([ConfigAuth](#configauth)): Signs in.\n- `host`: It.\n\n" +
		"### Connector\n\n- `id` (required): I.\n- `oidc` ([OIDC](#oidc), required): O.\n\n### OIDC\n\n- `issuer`: S.\n"
	model := withoutName(fields)
	expect(t, differences("the model", model, "the page", documentedFields(page, "configstatus")))
	expect(t, differences("the model", model, "the page", documentedFields(strings.Replace(page, "- `host`: It.", "- `colour`: It.", 1), "configstatus")),
		`the model has "host: It."`, `the page has "colour: It."`)
}
