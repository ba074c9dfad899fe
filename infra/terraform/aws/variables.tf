variable "name" {
  description = "Name of the deployment, and prefix of everything in it."
  type        = string
  default     = "platform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,20}$", var.name))
    error_message = "Use a small letter, then up to 20 small letters, digits and dashes."
  }
}

variable "region" {
  description = "AWS region."
  type        = string
  default     = "eu-central-1"
}

variable "build" {
  description = "Folder into which `make build` writes the programs for Lambda."
  type        = string
  default     = "../../../build/lambda"
}

variable "architecture" {
  description = "Architecture of the functions: arm64 or amd64, for which `make build ARCHITECTURES=amd64` builds them."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "amd64"], var.architecture)
    error_message = "Use arm64 or amd64."
  }
}

variable "secrets_layer_arn" {
  description = "ARN of the AWS parameters and secrets extension for the region and architecture. docs/deploy.md looks it up."
  type        = string
}

variable "network_cidr" {
  description = "Address range of the network that is created."
  type        = string
  default     = "10.60.0.0/16"
}

variable "redis_node_type" {
  description = "Node type of the Redis."
  type        = string
  default     = "cache.t4g.small"
}

variable "redis_nodes" {
  description = "Number of nodes of the Redis: a primary, and replicas in other zones. With 1 there is no failover."
  type        = number
  default     = 2

  validation {
    condition     = var.redis_nodes >= 1 && var.redis_nodes <= 6
    error_message = "Use 1 to 6 nodes."
  }
}

variable "redis_snapshot_days" {
  description = "How many daily snapshots of the Redis are kept."
  type        = number
  default     = 7
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

variable "metrics" {
  description = "emf: CloudWatch makes metrics from the log, at its price for each metric. none: it does not."
  type        = string
  default     = "none"
}

variable "audit_store_secret_arn" {
  description = "ARN of a secret whose text is the URL of the audit's data store. Empty: the audit has none."
  type        = string
  default     = ""
}

variable "log_retention_days" {
  description = "How long logs are kept, in days."
  type        = number
  default     = 30
}

variable "watch_window" {
  description = "Duration of a watch on the gateway, which cannot stream: the client receives the events when the watch ends."
  type        = string
  default     = "10s"
}

variable "requests_per_second" {
  description = "Number of requests per second above which the gateway answers 429."
  type        = number
  default     = 500
}

variable "requests_burst" {
  description = "Number of concurrent requests above which the gateway answers 429."
  type        = number
  default     = 1000
}

variable "stream_concurrency" {
  description = "Number of instances of each function that streams, and so of the watches that it keeps open. They are reserved: taken out of the instances of the account, of which 100 must be left."
  type        = number
  default     = 25

  validation {
    condition     = var.stream_concurrency >= 1
    error_message = "Use 1 or more."
  }
}

variable "alarm_topics" {
  description = "ARNs of the SNS topics that receive alarms. Empty: alarms are shown but not sent."
  type        = list(string)
  default     = []
}
