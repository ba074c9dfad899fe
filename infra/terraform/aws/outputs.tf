output "server" {
  description = "Server for kubeconfigs."
  value       = "${aws_apigatewayv2_api.api.api_endpoint}/kubernetes/management"
}

output "watch_servers" {
  description = "Servers that stream watches, by the name of the function."
  value       = { for name, url in aws_lambda_function_url.stream : local.streamed[name].program => "${trimsuffix(url.function_url, "/")}/kubernetes/management" }
}

output "redis_url_secret" {
  description = "ARN of the secret with the URL of the Redis."
  value       = aws_secretsmanager_secret.redis_url.arn
}

output "private_subnets" {
  description = "Subnets from which the Redis can be reached, with the security group of the functions."
  value       = aws_subnet.private[*].id
}

output "functions_security_group" {
  description = "Security group of the clients that may reach the Redis."
  value       = aws_security_group.functions.id
}
