# A key for a CI job and a virtual cluster, as objects of Terraform. The key that Terraform itself uses comes from KUBE_TOKEN, and the
# server's address from KUBE_HOST: https://HOST/kubernetes/management.
terraform {
  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 2.30"
    }
  }
}

provider "kubernetes" {}

resource "kubernetes_manifest" "dev" {
  manifest = {
    apiVersion = "management.platform.sh/v1"
    kind       = "VirtualClusterInstance"
    metadata = {
      name      = "dev"
      namespace = "p-shop"
    }
    spec = {
      displayName = "Shop, development"
      owner       = { user = "admin" }
      accessPoint = { ingress = { enabled = true, host = "dev.shop.example.com" } }
    }
  }
}

# Terraform stores the text of this key in its state, as everything that the Kubernetes provider writes. Keys that only a run of Terraform needs are
# ephemeral resources (../terraform-ephemeral). This form is for a text that is brought along and is sensitive anyway:
variable "ci_key" {
  description = "The text of the key: 32 to 256 printable characters, random."
  type        = string
  sensitive   = true
}

resource "kubernetes_manifest" "ci" {
  manifest = {
    apiVersion = "management.platform.sh/v1"
    kind       = "OwnedAccessKey"
    metadata   = { name = "ci" }
    spec = {
      displayName = "Nightly builds"
      key         = var.ci_key
      ttl         = 86400
      scope       = { roles = [{ role = "platformCLI" }] }
    }
  }
  # The server stores a digest and never returns the text.
  computed_fields = ["spec.key"]
}
