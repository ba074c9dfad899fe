locals {
  routes = merge([
    for name, f in local.functions : merge(
      { for route in f.routes : route => name },
      f.fallback ? { "$default" = name } : {},
    )
  ]...)
}

resource "aws_apigatewayv2_api" "api" {
  name          = var.name
  protocol_type = "HTTP"
}

resource "aws_apigatewayv2_integration" "function" {
  for_each = toset(values(local.routes))

  api_id                 = aws_apigatewayv2_api.api.id
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_function.function[each.key].invoke_arn
  payload_format_version = "2.0"
}

resource "aws_apigatewayv2_route" "function" {
  for_each = local.routes

  api_id    = aws_apigatewayv2_api.api.id
  route_key = each.key
  target    = "integrations/${aws_apigatewayv2_integration.function[each.value].id}"
}

resource "aws_lambda_permission" "gateway" {
  for_each = aws_apigatewayv2_integration.function

  statement_id  = "gateway"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function[each.key].function_name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.api.execution_arn}/*"
}

resource "aws_cloudwatch_log_group" "gateway" {
  name              = "/aws/apigateway/${var.name}"
  retention_in_days = var.log_retention_days
}

resource "aws_apigatewayv2_stage" "default" {
  api_id      = aws_apigatewayv2_api.api.id
  name        = "$default"
  auto_deploy = true

  default_route_settings {
    detailed_metrics_enabled = true
    throttling_rate_limit    = var.requests_per_second
    throttling_burst_limit   = var.requests_burst
  }

  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.gateway.arn

    # Headers are not logged: one of them is the access key.
    format = jsonencode({
      time   = "$context.requestTime"
      id     = "$context.requestId"
      route  = "$context.routeKey"
      status = "$context.status"
      ms     = "$context.responseLatency"
      bytes  = "$context.responseLength"
      error  = "$context.integrationErrorMessage"
    })
  }
}
