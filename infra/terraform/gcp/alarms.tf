resource "google_monitoring_alert_policy" "errors" {
  display_name          = "${var.name}: 5xx responses"
  combiner              = "OR"
  notification_channels = var.alarm_channels

  conditions {
    display_name = "A function responds with 5xx for three minutes."

    condition_threshold {
      filter          = "resource.type = \"cloud_run_revision\" AND resource.labels.service_name = starts_with(\"${var.name}-\") AND metric.type = \"run.googleapis.com/request_count\" AND metric.labels.response_code_class = \"5xx\""
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "180s"

      aggregations {
        alignment_period     = "60s"
        per_series_aligner   = "ALIGN_RATE"
        cross_series_reducer = "REDUCE_SUM"
        group_by_fields      = ["resource.labels.service_name"]
      }
    }
  }
}

resource "google_monitoring_alert_policy" "redis_memory" {
  display_name          = "${var.name}: memory of the Redis"
  combiner              = "OR"
  notification_channels = var.alarm_channels

  conditions {
    display_name = "More than three quarters of the Redis memory are in use."

    condition_threshold {
      filter          = "resource.type = \"redis_instance\" AND resource.labels.instance_id = \"${google_redis_instance.state.id}\" AND metric.type = \"redis.googleapis.com/stats/memory/usage_ratio\""
      comparison      = "COMPARISON_GT"
      threshold_value = 0.75
      duration        = "180s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }
}

resource "google_monitoring_alert_policy" "silent" {
  for_each = local.scheduled

  display_name          = "${var.name}: ${each.key} is silent"
  combiner              = "OR"
  notification_channels = var.alarm_channels

  conditions {
    display_name = "The schedule did not start the function for a quarter of an hour."

    condition_absent {
      filter   = "resource.type = \"cloud_run_revision\" AND resource.labels.service_name = \"${google_cloud_run_v2_service.function[each.key].name}\" AND metric.type = \"run.googleapis.com/request_count\""
      duration = "900s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_RATE"
      }
    }
  }
}
