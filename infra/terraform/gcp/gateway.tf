# This is an external application load balancer, because API Gateway replaces the access key with its own token and does
# not stream.
locals {
  fallback = one([for name, f in local.functions : name if f.fallback])

  # Rules are tried in the order of their priority: paths without a variable come before those with one.
  rules = [
    for key in sort([
      for rule in flatten([
        for name, f in local.routed : [
          for route in f.routes : { function = name, method = split(" ", route)[0], path = split(" ", route)[1] }
        ]
      ]) : jsonencode([length(split("{", rule.path)), rule.path, rule.method, rule.function])
    ]) : jsondecode(key)
  ]
}

resource "google_compute_global_address" "api" {
  name = var.name

  depends_on = [google_project_service.used]
}

resource "google_compute_region_network_endpoint_group" "function" {
  for_each = local.routed

  name                  = "${var.name}-${each.key}"
  region                = var.region
  network_endpoint_type = "SERVERLESS"

  cloud_run {
    service = google_cloud_run_v2_service.function[each.key].name
  }
}

resource "google_compute_backend_service" "function" {
  for_each = local.routed

  name                  = "${var.name}-${each.key}"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  protocol              = "HTTPS"

  backend {
    group = google_compute_region_network_endpoint_group.function[each.key].id
  }
}

resource "google_compute_url_map" "api" {
  name            = var.name
  default_service = google_compute_backend_service.function[local.fallback].id

  host_rule {
    hosts        = [var.domain]
    path_matcher = "api"
  }

  path_matcher {
    name            = "api"
    default_service = google_compute_backend_service.function[local.fallback].id

    dynamic "route_rules" {
      for_each = local.rules

      content {
        priority = route_rules.key + 1
        service  = google_compute_backend_service.function[route_rules.value[3]].id

        match_rules {
          path_template_match = replace(replace(route_rules.value[1], "/\\{\\w+\\+\\}/", "**"), "/\\{\\w+\\}/", "*")

          header_matches {
            header_name = ":method"
            exact_match = route_rules.value[2]
          }
        }
      }
    }
  }
}

resource "google_certificate_manager_certificate" "api" {
  name = var.name

  managed {
    domains = [var.domain]
  }

  depends_on = [google_project_service.used]
}

resource "google_certificate_manager_certificate_map" "api" {
  name = var.name

  depends_on = [google_project_service.used]
}

resource "google_certificate_manager_certificate_map_entry" "api" {
  name         = var.name
  map          = google_certificate_manager_certificate_map.api.name
  certificates = [google_certificate_manager_certificate.api.id]
  hostname     = var.domain
}

resource "google_compute_ssl_policy" "api" {
  name            = var.name
  profile         = "MODERN"
  min_tls_version = "TLS_1_2"
}

resource "google_compute_target_https_proxy" "api" {
  name            = var.name
  url_map         = google_compute_url_map.api.id
  certificate_map = "//certificatemanager.googleapis.com/${google_certificate_manager_certificate_map.api.id}"
  ssl_policy      = google_compute_ssl_policy.api.id
}

resource "google_compute_global_forwarding_rule" "api" {
  name                  = var.name
  load_balancing_scheme = "EXTERNAL_MANAGED"
  target                = google_compute_target_https_proxy.api.id
  ip_address            = google_compute_global_address.api.id
  port_range            = "443"
}
