// Package catalog lists every function of the API. The list is generated from the folders, in the order in which discovery has their
// resources. The local runner mounts it, and generators and tests read it. A function that is not listed is not deployed.
// Source: ADR-0001, ADR-0049.
package catalog
