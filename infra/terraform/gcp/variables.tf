variable "project" {
  description = "Project of Google Cloud."
  type        = string
}

variable "region" {
  description = "Region of Google Cloud."
  type        = string
  default     = "europe-west3"
}

variable "name" {
  description = "Name of the deployment, and prefix of everything in it."
  type        = string
  default     = "platform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,12}$", var.name))
    error_message = "Want a small letter, then up to 12 small letters, digits and dashes."
  }
}

variable "domain" {
  description = "Name under which the API is reached. Its DNS entry must lead to the address in the outputs before the certificate is given."
  type        = string
}

variable "image" {
  description = "The image of the functions, with a tag or digest: REGION-docker.pkg.dev/PROJECT/REPOSITORY/functions:TAG."
  type        = string
}

variable "network_cidr" {
  description = "Addresses of the subnet of the functions: /26 or more."
  type        = string
  default     = "10.60.0.0/24"
}

variable "redis_memory_gb" {
  description = "Memory of the Redis."
  type        = number
  default     = 1
}

variable "redis_tier" {
  description = "BASIC: one node, nothing survives its end but snapshots. STANDARD_HA: with a replica in another zone."
  type        = string
  default     = "STANDARD_HA"

  validation {
    condition     = contains(["BASIC", "STANDARD_HA"], var.redis_tier)
    error_message = "Want BASIC or STANDARD_HA."
  }
}

variable "max_instances" {
  description = "Most instances of one function."
  type        = number
  default     = 100
}

variable "concurrency" {
  description = "Requests that one instance answers at once."
  type        = number
  default     = 80
}

variable "release" {
  description = "What /version says is deployed, such as the tag of the build: letters, digits, dots and dashes."
  type        = string
  default     = "dev"

  validation {
    condition     = can(regex("^[0-9A-Za-z.-]+$", var.release))
    error_message = "Want letters, digits, dots and dashes."
  }
}

variable "log_level" {
  description = "Least level of the log: debug, info, warn or error."
  type        = string
  default     = "info"
}

variable "log_retention_days" {
  description = "How long logs are kept, in days."
  type        = number
  default     = 30
}

variable "alarm_channels" {
  description = "Notification channels of Cloud Monitoring that alarms are sent to."
  type        = list(string)
  default     = []
}
