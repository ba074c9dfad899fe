// Package terraform checks the modules below infra/terraform without their providers, which no registry of Go has. Files are formatted, every
// name is declared, rights are narrow, secrets reach only places for secrets, and routes are the same as in the table. Attributes are not
// checked against the schemas of the providers. It is a module of its own, so that no function depends on the language of Terraform.
package terraform
