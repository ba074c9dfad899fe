# A job that works in a virtual cluster with credentials that exist while Terraform runs, and stand in no state and no plan. The address of the
# platform comes from PLATFORM_SERVER, and Terraform's own key from PLATFORM_ACCESS_KEY.
terraform {
  required_version = ">= 1.10" # OpenTofu: 1.11
  required_providers {
    platform = {
      source = "management.platform.sh/platform/platform"
    }
  }
}

variable "certificate_authority" {
  description = "File with the certificate authority of the platform. Null: the authorities of the system."
  type        = string
  default     = null
}

provider "platform" {
  certificate_authority = var.certificate_authority
}

# A key for one virtual cluster. It is deleted when Terraform no longer needs it, and ends by itself if Terraform is killed.
ephemeral "platform_access_key" "job" {
  display_name = "Job of Terraform"
  ttl          = 600
  scope = {
    virtual_clusters = [{ project = "shop", virtual_cluster = "dev" }]
  }
}

# What is done with this key can do no more than the key.
provider "platform" {
  alias                 = "job"
  access_key            = ephemeral.platform_access_key.job.key
  certificate_authority = var.certificate_authority
}

ephemeral "platform_kubeconfig" "dev" {
  provider  = platform.job
  namespace = "p-shop"
  name      = "dev"
}

# A token for programs that reach connected clusters directly. They verify it without the platform.
ephemeral "platform_cluster_token" "east" {
  ttl = 300
  scope = {
    clusters = [{ cluster = "east" }]
  }
}

# Provisioners, provider blocks and write-only arguments take ephemeral values. A provider for Kubernetes takes these:
#
#   provider "kubernetes" {
#     host                   = ephemeral.platform_kubeconfig.dev.host
#     cluster_ca_certificate = ephemeral.platform_kubeconfig.dev.cluster_ca_certificate
#     token                  = ephemeral.platform_kubeconfig.dev.token
#   }
resource "terraform_data" "job" {
  provisioner "local-exec" {
    command = "test -n \"$TOKEN\" && test -n \"$CLUSTER_TOKEN\" && echo \"$HOST is ready\""
    environment = {
      HOST          = ephemeral.platform_kubeconfig.dev.host
      TOKEN         = ephemeral.platform_kubeconfig.dev.token
      CLUSTER_TOKEN = ephemeral.platform_cluster_token.east.token
    }
  }
}
