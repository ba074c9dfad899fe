// Package terraform checks the modules below infra/terraform as far as that goes without their providers, which no
// registry of Go has: that they are formatted, that every name is declared, that rights are narrow, that secrets go where
// secrets may go, and that their routes are those of the table. What a provider would say of an attribute is not known
// here. It is a module of its own, so that no function depends on the language of Terraform.
package terraform
