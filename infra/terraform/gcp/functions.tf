locals {
  # Generated from the catalog: the next apply deploys functions that were added to it.
  functions = jsondecode(file("${path.module}/../functions.json"))

  # Names of service accounts have at most 30 characters.
  accounts = {
    for name in keys(local.functions) :
    name => length("${var.name}-${name}") <= 30 ? "${var.name}-${name}" : "${substr("${var.name}-${name}", 0, 21)}-${substr(sha1(name), 0, 8)}"
  }

  # A function may read each of the secrets.
  readings = {
    for pair in setproduct(keys(local.functions), keys(google_secret_manager_secret.redis)) :
    "${pair[0]}/${pair[1]}" => { function = pair[0], secret = pair[1] }
  }

  # Routes need no Google identity: callers have an access key, which the function checks.
  routed    = { for name, f in local.functions : name => f if length(f.routes) > 0 }
  scheduled = { for name, f in local.functions : name => f if f.scheduleMinutes > 0 }
}

resource "google_service_account" "function" {
  for_each = local.functions

  account_id   = local.accounts[each.key]
  display_name = "Function ${each.key}"
}

resource "google_secret_manager_secret_iam_member" "function" {
  for_each = local.readings

  secret_id = google_secret_manager_secret.redis[each.value.secret].id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.function[each.value.function].member
}

resource "google_secret_manager_secret_iam_member" "encryption_key" {
  for_each = { for name, f in local.functions : name => f if f.encrypts }

  secret_id = google_secret_manager_secret.encryption_key.id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.function[each.key].member
}

resource "google_secret_manager_secret_iam_member" "audit_store" {
  for_each = { for name, f in local.functions : name => f if var.audit_store_secret != "" }

  secret_id = var.audit_store_secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.function[each.key].member
}

resource "google_cloud_run_v2_service" "function" {
  for_each = local.functions

  name                = "${var.name}-${each.key}"
  location            = var.region
  deletion_protection = false
  ingress             = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"

  template {
    service_account                  = google_service_account.function[each.key].email
    timeout                          = each.value.stream ? "3600s" : "75s"
    max_instance_request_concurrency = var.concurrency

    scaling {
      min_instance_count = 0
      max_instance_count = var.max_instances
    }

    vpc_access {
      egress = "PRIVATE_RANGES_ONLY"

      network_interfaces {
        network    = google_compute_network.main.id
        subnetwork = google_compute_subnetwork.functions.id
      }
    }

    volumes {
      name = "redis-ca"

      secret {
        secret = google_secret_manager_secret.redis["redis-ca"].secret_id

        items {
          version = "latest"
          path    = "ca.pem"
        }
      }
    }

    containers {
      # One image has all functions; the target selects one.
      image = var.image

      resources {
        cpu_idle = true

        limits = {
          cpu    = "1"
          memory = "${each.value.memoryMB}Mi"
        }
      }

      env {
        name  = "FUNCTION_TARGET"
        value = each.key
      }

      env {
        name  = "PLATFORM_ISSUER"
        value = "https://${var.domain}/kubernetes/management"
      }

      env {
        name  = "PLATFORM_LOG_LEVEL"
        value = var.log_level
      }

      env {
        name  = "PLATFORM_VERSION"
        value = var.release
      }

      # The Redis has its own certificate authority.
      env {
        name  = "SSL_CERT_DIR"
        value = "/etc/ssl/certs:/etc/platform/redis"
      }

      env {
        name = "PLATFORM_REDIS_URL"

        value_source {
          secret_key_ref {
            secret  = google_secret_manager_secret.redis["redis-url"].secret_id
            version = "latest"
          }
        }
      }

      dynamic "env" {
        for_each = each.value.encrypts ? [google_secret_manager_secret.encryption_key.secret_id] : []

        content {
          name = "PLATFORM_ENCRYPTION_KEY"

          value_source {
            secret_key_ref {
              secret  = env.value
              version = "latest"
            }
          }
        }
      }

      dynamic "env" {
        for_each = var.audit_store_secret == "" ? [] : [var.audit_store_secret]

        content {
          name = "PLATFORM_SECRET_AUDIT_STORE"

          value_source {
            secret_key_ref {
              secret  = env.value
              version = "latest"
            }
          }
        }
      }

      volume_mounts {
        name       = "redis-ca"
        mount_path = "/etc/platform/redis"
      }
    }
  }

  depends_on = [google_secret_manager_secret_version.redis, google_secret_manager_secret_iam_member.function, google_secret_manager_secret_iam_member.encryption_key, google_secret_manager_secret_iam_member.audit_store]
}

resource "google_cloud_run_v2_service_iam_member" "callers" {
  for_each = local.routed

  name     = google_cloud_run_v2_service.function[each.key].name
  location = var.region
  role     = "roles/run.invoker"
  member   = "allUsers"
}

resource "google_service_account" "clock" {
  account_id   = "${var.name}-clock"
  display_name = "Cloud Scheduler"
}

resource "google_cloud_run_v2_service_iam_member" "clock" {
  for_each = local.scheduled

  name     = google_cloud_run_v2_service.function[each.key].name
  location = var.region
  role     = "roles/run.invoker"
  member   = google_service_account.clock.member
}

resource "google_cloud_scheduler_job" "schedule" {
  for_each = local.scheduled

  name             = "${var.name}-${each.key}"
  region           = var.region
  schedule         = "*/${each.value.scheduleMinutes} * * * *"
  time_zone        = "Etc/UTC"
  attempt_deadline = "90s"

  # The next run also does the work of a lost one.
  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = google_cloud_run_v2_service.function[each.key].uri
    body        = base64encode("{}")

    # The request is a CloudEvent in binary mode.
    headers = {
      "Content-Type"   = "application/json"
      "ce-specversion" = "1.0"
      "ce-id"          = each.key
      "ce-source"      = "/scheduler/${var.name}-${each.key}"
      "ce-type"        = "sh.platform.management.schedule"
    }

    oidc_token {
      service_account_email = google_service_account.clock.email
      audience              = google_cloud_run_v2_service.function[each.key].uri
    }
  }

  depends_on = [google_project_service.used]
}
