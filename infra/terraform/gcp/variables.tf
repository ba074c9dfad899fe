variable "project" {
  description = "Google Cloud project."
  type        = string
}

variable "region" {
  description = "Google Cloud region."
  type        = string
  default     = "europe-west3"
}

variable "name" {
  description = "Name of the deployment, and prefix of everything in it."
  type        = string
  default     = "platform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,12}$", var.name))
    error_message = "Use a small letter, then up to 12 small letters, digits and dashes."
  }
}

variable "domain" {
  description = "Host name of the API. Its DNS entry must lead to the address in the outputs before the certificate can be issued."
  type        = string
}

variable "image" {
  description = "The image of the functions, with a tag or digest: REGION-docker.pkg.dev/PROJECT/REPOSITORY/functions:TAG."
  type        = string
}

variable "network_cidr" {
  description = "Address range of the subnet of the functions: /26 or larger."
  type        = string
  default     = "10.60.0.0/24"
}

variable "redis_memory_gb" {
  description = "Memory of the Redis in GiB."
  type        = number
  default     = 1
}

variable "redis_tier" {
  description = "BASIC: one node; if it fails, only snapshots survive. STANDARD_HA: with a replica in another zone."
  type        = string
  default     = "STANDARD_HA"

  validation {
    condition     = contains(["BASIC", "STANDARD_HA"], var.redis_tier)
    error_message = "Use BASIC or STANDARD_HA."
  }
}

variable "max_instances" {
  description = "Maximum number of instances of one function."
  type        = number
  default     = 100
}

variable "concurrency" {
  description = "Maximum number of requests that one instance answers at once."
  type        = number
  default     = 80
}

variable "release" {
  description = "Version that /version returns, such as the tag of the build: letters, digits, dots and dashes."
  type        = string
  default     = "dev"

  validation {
    condition     = can(regex("^[0-9A-Za-z.-]+$", var.release))
    error_message = "Use letters, digits, dots and dashes."
  }
}

variable "log_level" {
  description = "Lowest level that is logged: debug, info, warn or error."
  type        = string
  default     = "info"
}

variable "audit_store_secret" {
  description = "Name of a secret in Secret Manager whose text is the URL of the audit's data store. Empty: the audit has none."
  type        = string
  default     = ""
}

variable "log_retention_days" {
  description = "How long logs are kept, in days."
  type        = number
  default     = 30
}

variable "alarm_channels" {
  description = "Notification channels of Cloud Monitoring that receive alarms."
  type        = list(string)
  default     = []
}
