resource "google_redis_instance" "state" {
  name                    = var.name
  region                  = var.region
  tier                    = var.redis_tier
  memory_size_gb          = var.redis_memory_gb
  redis_version           = "REDIS_7_2"
  authorized_network      = google_compute_network.main.id
  connect_mode            = "PRIVATE_SERVICE_ACCESS"
  auth_enabled            = true
  transit_encryption_mode = "SERVER_AUTHENTICATION"

  # The Redis is not a cache: a full server must refuse writes and not evict keys.
  redis_configs = {
    "maxmemory-policy" = "noeviction"
  }

  persistence_config {
    persistence_mode    = "RDB"
    rdb_snapshot_period = "ONE_HOUR"
  }

  lifecycle {
    prevent_destroy = true
  }

  depends_on = [google_service_networking_connection.services]
}

locals {
  secrets = {
    "redis-url" = "rediss://:${google_redis_instance.state.auth_string}@${google_redis_instance.state.host}:${google_redis_instance.state.port}"
    "redis-ca"  = join("\n", google_redis_instance.state.server_ca_certs[*].cert)
  }
}

# Only the functions that seal secrets in the Redis read it. To change it, put a new key in front of the old one.
resource "random_bytes" "encryption_key" {
  length = 32
}

resource "google_secret_manager_secret" "encryption_key" {
  secret_id = "${var.name}-encryption-key"

  replication {
    auto {}
  }

  depends_on = [google_project_service.used]
}

resource "google_secret_manager_secret_version" "encryption_key" {
  secret      = google_secret_manager_secret.encryption_key.id
  secret_data = random_bytes.encryption_key.base64

  lifecycle {
    ignore_changes = [secret_data]
  }
}

resource "google_secret_manager_secret" "redis" {
  for_each = toset(["redis-url", "redis-ca"])

  secret_id = "${var.name}-${each.key}"

  replication {
    auto {}
  }

  depends_on = [google_project_service.used]
}

resource "google_secret_manager_secret_version" "redis" {
  for_each = google_secret_manager_secret.redis

  secret      = each.value.id
  secret_data = local.secrets[each.key]
}
